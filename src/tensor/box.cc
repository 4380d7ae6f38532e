// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/checked.h"
#include "base/fail.h"
#include "shardwright/tensor.h"

namespace shardwright {
namespace {

// Far beyond any tensor's, and what stands beside a zero is no product's factor: an extent times a
// count of ranks, heads or bytes stays within int64.
constexpr std::int64_t kMaxExtent = std::int64_t{1} << 48;

}  // namespace

std::string to_string(const Dims& dims) {
  std::string text = "(";
  for (int axis = 0; axis < dims.size(); ++axis) {
    if (axis > 0) text += ", ";
    text += std::to_string(dims[axis]);
  }
  if (dims.size() == 1) text += ",";
  return text + ")";
}

Result<std::int64_t> element_count(const Dims& shape) {
  std::int64_t count = 1;
  bool has_zero = false;
  for (std::int64_t extent : shape) {
    if (extent < 0)
      return fail(Code::kOutOfBounds, "shape {} has a negative extent", to_string(shape));
    if (extent > kMaxExtent)
      return fail(Code::kLimit, "shape {} has an extent above 2^48", to_string(shape));
    if (extent == 0) {
      has_zero = true;
      continue;
    }
    const auto product = checked_mul(count, extent);
    if (!product)
      return fail(Code::kLimit, "shape {} has more elements than int64 holds", to_string(shape));
    count = *product;
  }
  return has_zero ? 0 : count;
}

Result<std::int64_t> byte_count(const Dims& shape, DType dtype) {
  const std::int64_t elements = SW_TRY(element_count(shape));
  const auto bytes = checked_mul<std::int64_t>(elements, bytes_of(dtype));
  if (!bytes)
    return fail(Code::kLimit, "shape {} has more bytes than int64 holds", to_string(shape));
  return *bytes;
}

Dims row_major_strides(const Dims& shape) {
  Dims strides = Dims::filled(shape.size(), 1);
  for (int axis = shape.size() - 2; axis >= 0; --axis) {
    strides[axis] = strides[axis + 1] * std::max<std::int64_t>(shape[axis + 1], 1);
  }
  return strides;
}

Dims byte_strides(Dims strides, std::int64_t element_bytes) {
  for (int axis = 0; axis < strides.size(); ++axis) strides[axis] *= element_bytes;
  return strides;
}

bool Box::is_empty() const {
  return std::any_of(shape.begin(), shape.end(), [](std::int64_t extent) { return extent == 0; });
}

std::int64_t Box::volume() const {
  std::int64_t count = 1;
  for (std::int64_t extent : shape) count *= extent;
  return count;
}

std::string to_string(const Box& box) {
  std::string text = "[";
  for (int axis = 0; axis < box.axes(); ++axis) {
    if (axis > 0) text += ", ";
    text += fmt::format("{}:{}", box.origin[axis], box.end(axis));
  }
  return text + "]";
}

Result<Box> make_box(const Dims& origin, const Dims& shape, const Dims& outer) {
  const auto refuse = [&] {
    return fail(Code::kOutOfBounds, "box at {} of shape {} does not lie inside {}",
                to_string(origin), to_string(shape), to_string(outer));
  };
  if (origin.size() != shape.size() || shape.size() != outer.size()) return refuse();
  for (int axis = 0; axis < shape.size(); ++axis) {
    if (origin[axis] < 0 || shape[axis] < 0) return refuse();
    const auto end = checked_add(origin[axis], shape[axis]);
    if (!end || *end > outer[axis]) return refuse();
  }
  return Box{origin, shape};
}

std::optional<Box> intersect(const Box& a, const Box& b) {
  Box common{a.origin, a.shape};
  for (int axis = 0; axis < a.axes(); ++axis) {
    const std::int64_t begin = std::max(a.origin[axis], b.origin[axis]);
    const std::int64_t end = std::min(a.end(axis), b.end(axis));
    if (begin >= end) return std::nullopt;
    common.origin[axis] = begin;
    common.shape[axis] = end - begin;
  }
  return common;
}

bool contains(const Box& outer, const Box& inner) {
  for (int axis = 0; axis < outer.axes(); ++axis) {
    if (inner.origin[axis] < outer.origin[axis] || inner.end(axis) > outer.end(axis)) return false;
  }
  return true;
}

}  // namespace shardwright

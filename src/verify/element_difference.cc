// SPDX-License-Identifier: Apache-2.0
#include "verify/element_difference.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "tensor/values.h"

namespace shardwright {
namespace {

// The distance of two numbers; infinite where it has none.
double distance(double left, double right) {
  const double delta = std::fabs(left - right);
  return std::isnan(delta) ? HUGE_VAL : delta;
}

// Of two elements with different bits. Two NaNs or infinities of one sign are no further apart.
double distance_of(DType dtype, std::span<const std::byte> left, std::span<const std::byte> right) {
  std::array<double, 2> a{};
  std::array<double, 2> b{};
  const auto parts = static_cast<std::size_t>(parts_of(dtype));
  if (parts == 0) return HUGE_VAL;
  decode_values(dtype, left, std::span(a).first(parts));
  decode_values(dtype, right, std::span(b).first(parts));
  double largest = 0.0;
  for (std::size_t i = 0; i < parts; ++i) {
    const bool same = a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i]));
    if (!same) largest = std::max(largest, distance(a[i], b[i]));
  }
  return largest;
}

}  // namespace

void ElementDifference::add(const ElementDifference& other) {
  if (other.differing == 0) return;
  first = differing == 0 ? other.first : std::min(first, other.first);
  differing += other.differing;
  max_delta = std::max(max_delta, other.max_delta);
}

ElementDifference compare_elements(DType dtype, std::span<const std::byte> left,
                                   std::span<const std::byte> right,
                                   std::optional<double> tolerance) {
  ElementDifference found;
  if (left.empty() || std::memcmp(left.data(), right.data(), left.size()) == 0) return found;
  const auto size = static_cast<std::size_t>(bytes_of(dtype));
  const bool may_be_near = tolerance.has_value() && !is_integer(dtype);
  for (std::size_t at = 0; at < left.size(); at += size) {
    if (std::memcmp(left.data() + at, right.data() + at, size) == 0) continue;
    const double delta = distance_of(dtype, left.subspan(at, size), right.subspan(at, size));
    if (may_be_near && delta <= *tolerance) continue;
    found.add({1, static_cast<std::int64_t>(at / size), delta});
  }
  return found;
}

std::int64_t row_major_position(const Dims& shape, const Box& box, std::int64_t at) {
  const Dims strides = row_major_strides(shape);
  const Dims inside = index_of(box.shape, at);
  std::int64_t position = 0;
  for (int axis = 0; axis < shape.size(); ++axis) {
    position += (box.origin[axis] + inside[axis]) * strides[axis];
  }
  return position;
}

Dims index_of(const Dims& shape, std::int64_t position) {
  Dims index = Dims::filled(shape.size(), 0);
  for (int axis = shape.size() - 1; axis >= 0; --axis) {
    index[axis] = position % shape[axis];
    position /= shape[axis];
  }
  return index;
}

}  // namespace shardwright

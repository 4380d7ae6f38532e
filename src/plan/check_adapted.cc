// SPDX-License-Identifier: Apache-2.0
#include "plan/check_adapted.h"

#include <cmath>

#include "base/fail.h"
#include "tensor/strided_copy.h"

namespace shardwright {
namespace {

// What float32 holds exactly.
bool fits_float32(DType dtype) {
  return dtype == DType::kF32 || dtype == DType::kBF16 || dtype == DType::kF16;
}

// An expert's factor may be a part of all experts'.
bool is_one_chunk(const StoredTensor& tensor) {
  if (tensor.encoding != Encoding::kRaw || tensor.chunks.size() != 1) return false;
  const Chunk chunk = tensor.chunks[0];
  const Dims& shape = tensor.desc.shape;
  if (!(chunk.box == Box::whole(shape))) return false;
  const int element = bytes_of(tensor.desc.dtype);
  Dims strides = chunk.strides.empty() ? row_major_strides(shape) : chunk.strides;
  for (int axis = 0; axis < strides.size(); ++axis) {
    if (strides[axis] < 1) return false;
    strides[axis] *= element;
  }
  return chunk.range.length == static_cast<std::uint64_t>(span_bytes(shape, strides, element));
}

bool has_axis(const Dims& shape, int axis) { return axis >= 0 && axis < shape.size(); }

// The shapes that the factors of values of this shape have. No `in`: a vector is added.
bool fits(const AdaptedSource& adapted, const Dims& values, const Dims& out, const Dims* in) {
  if (!has_axis(values, adapted.out_axis)) return false;
  const std::int64_t rows = values[adapted.out_axis];
  if (in == nullptr) return values.size() == 1 && !adapted.each_axis && out == Dims{rows};
  const int axes = adapted.each_axis ? 3 : 2;
  if (values.size() != axes || !has_axis(values, adapted.in_axis) ||
      adapted.in_axis == adapted.out_axis || out.size() != axes || out[axes - 1] < 1) {
    return false;
  }
  const std::int64_t rank = out[axes - 1];
  const std::int64_t columns = values[adapted.in_axis];
  if (!adapted.each_axis) return out == Dims{rows, rank} && *in == Dims{rank, columns};
  if (!has_axis(values, *adapted.each_axis) || *adapted.each_axis == adapted.out_axis ||
      *adapted.each_axis == adapted.in_axis) {
    return false;
  }
  const std::int64_t count = values[*adapted.each_axis];
  return out == Dims{count, rows, rank} && *in == Dims{count, rank, columns};
}

// REQUIRES: the factor is one chunk.
Status check_factor(const Plan& plan, const StoredTensor& values, const StoredTensor& factor) {
  if (fits_float32(factor.desc.dtype)) return {};
  return fail(Code::kDtypeUnsupported,
              "{}: tensor {}: found {}, expected float32, bfloat16 or float16; numbers of other "
              "types are not added to {}: convert the adapter first",
              plan.source.files[factor.chunks.file(0)], factor.desc.name,
              torch_name(factor.desc.dtype), values.desc.name);
}

Status check_one(const Plan& plan, const AdaptedSource& adapted, bool is_multiplied) {
  const std::vector<StoredTensor>& tensors = plan.source.tensors;
  const bool is_there = adapted.values < tensors.size() && adapted.out < tensors.size() &&
                        (!adapted.in || *adapted.in < tensors.size());
  if (!is_there) {
    return fail(Code::kPlanInvalid, "plan: an adapter's matrices are tensors that are not there");
  }
  const StoredTensor& values = tensors[adapted.values];
  const StoredTensor& out = tensors[adapted.out];
  const StoredTensor* in = adapted.in ? &tensors[*adapted.in] : nullptr;
  const auto invalid = [&](std::string_view why) {
    return fail(Code::kPlanInvalid, "tensor {}: what is added to it, {} {}, {}", values.desc.name,
                out.desc.name, to_string(out.desc.shape), why);
  };
  if (!is_multiplied && !fits_float32(values.desc.dtype)) {
    return fail(Code::kDtypeUnsupported,
                "tensor {}: found {}, expected float32, bfloat16 or float16; nothing is added to "
                "other types",
                values.desc.name, torch_name(values.desc.dtype));
  }
  if (!fits(adapted, values.desc.shape, out.desc.shape,
            in == nullptr ? nullptr : &in->desc.shape)) {
    return invalid(translated("does not have the shape for {}", to_string(values.desc.shape)));
  }
  if (!is_one_chunk(out) || (in != nullptr && !is_one_chunk(*in))) {
    return invalid("is not one whole chunk");
  }
  SW_TRY(check_factor(plan, values, out));
  if (in != nullptr) SW_TRY(check_factor(plan, values, *in));
  if (!std::isfinite(adapted.scale)) return invalid("has no finite scale");
  const auto rows = static_cast<std::size_t>(values.desc.shape[adapted.out_axis]);
  if (adapted.factors != nullptr && (adapted.each_axis || adapted.factors->size() != rows)) {
    return invalid("has not one factor for each row");
  }
  return {};
}

}  // namespace

Status check_adapted(const Plan& plan, const std::vector<bool>& is_multiplied) {
  std::vector<bool> is_adapted(plan.source.tensors.size(), false);
  for (const AdaptedSource& adapted : plan.adapted) {
    const bool is_there = adapted.values < is_adapted.size();
    SW_TRY(check_one(plan, adapted, is_there && is_multiplied[adapted.values]));
    if (is_adapted[adapted.values]) {
      return fail(Code::kPlanInvalid, "tensor {}: an adapter is added to it twice",
                  plan.source.tensors[adapted.values].desc.name);
    }
    is_adapted[adapted.values] = true;
  }
  return {};
}

}  // namespace shardwright

// SPDX-License-Identifier: Apache-2.0
#include <optional>
#include <utility>
#include <vector>

#include "base/checked.h"
#include "base/fail.h"
#include "plan/repeated_tensors.h"
#include "shardwright/plan.h"
#include "tensor/convert.h"
#include "tensor/dequantise.h"

namespace shardwright {
namespace {

Status check_view(const Plan& plan, const TensorDesc& target, const TensorView& view) {
  const auto invalid = [&](std::string_view why) {
    return fail(Code::kPlanInvalid, "tensor {}: view of {} {}", target.name, to_string(view.box),
                why);
  };
  if (view.source >= plan.source.tensors.size()) return invalid("reads a tensor that is not there");
  const TensorDesc& source = plan.source.tensors[view.source].desc;
  const int axes = target.shape.size();
  if (!make_box(view.box.origin, view.box.shape, target.shape)) return invalid("leaves the tensor");
  if (view.axis.size() != axes || view.step.size() != axes ||
      view.source_origin.size() != source.shape.size()) {
    return invalid("has the wrong number of axes");
  }
  if (view.box.is_empty()) return {};
  std::vector<bool> used(static_cast<std::size_t>(source.shape.size()), false);
  Box needed{view.source_origin, Dims::filled(source.shape.size(), 1)};
  for (int axis = 0; axis < axes; ++axis) {
    const std::int64_t s = view.axis[axis];
    if (s < 0) {
      if (view.box.shape[axis] != 1) return invalid("spreads one source element");
      continue;
    }
    if (s >= source.shape.size() || used[static_cast<std::size_t>(s)] || view.step[axis] < 1) {
      return invalid("names a source axis twice or none");
    }
    used[static_cast<std::size_t>(s)] = true;
    needed.shape[static_cast<int>(s)] = (view.box.shape[axis] - 1) * view.step[axis] + 1;
  }
  if (!make_box(needed.origin, needed.shape, source.shape)) {
    return invalid(fmt::format("reads {} of source {} {}", to_string(needed), source.name,
                               to_string(source.shape)));
  }
  return {};
}

// Bytes of a chunk that holds `count` stored values.
std::int64_t stored_bytes(DType dtype, std::int64_t count) {
  const int per_byte = values_per_byte(dtype);
  return per_byte > 1 ? ceil_div<std::int64_t>(count, per_byte) : count * bytes_of(dtype);
}

// Every element must find its scale: the last block of each axis together lies behind no scale.
Status check_quantised(const Plan& plan, const QuantisedSource& quantised) {
  const std::size_t count = plan.source.tensors.size();
  if (quantised.values >= count || quantised.scales >= count ||
      quantised.values == quantised.scales) {
    return fail(Code::kPlanInvalid, "plan: scales or their values are tensors that are not there");
  }
  const StoredTensor& values = plan.source.tensors[quantised.values];
  const StoredTensor& scales = plan.source.tensors[quantised.scales];
  const auto invalid = [&](std::string_view why) {
    return fail(Code::kPlanInvalid, "tensor {}: its scales {} {} {}", values.desc.name,
                scales.desc.name, to_string(scales.desc.shape), why);
  };
  if (!is_quantised(values.desc.dtype)) return invalid("multiply values that are not quantised");
  if (!is_scale(scales.desc.dtype)) return invalid("are of a type that scales do not have");
  const auto is_one_chunk = [](const StoredTensor& tensor) {
    return tensor.encoding == Encoding::kRaw && tensor.chunks.size() == 1 &&
           tensor.chunks.box(0) == Box::whole(tensor.desc.shape) &&
           tensor.chunks.range(0).length == static_cast<std::uint64_t>(stored_bytes(
                                                tensor.desc.dtype, tensor.chunks.box(0).volume()));
  };
  if (!is_one_chunk(values) || !is_one_chunk(scales) || !scales.chunks[0].strides.empty()) {
    return invalid("or the values are not one whole chunk");
  }
  const int axes = values.desc.shape.size();
  if (quantised.block.size() != axes || quantised.stride.size() != axes) {
    return invalid("have the wrong number of axes");
  }
  if (values.chunks.box(0).is_empty()) return {};
  std::int64_t last = 0;
  for (int axis = 0; axis < axes; ++axis) {
    if (quantised.block[axis] < 1 || quantised.stride[axis] < 0) return invalid("have no blocks");
    const std::int64_t blocks = (values.desc.shape[axis] - 1) / quantised.block[axis];
    const auto behind = checked_mul(blocks, quantised.stride[axis]);
    const auto sum = behind ? checked_add(last, *behind) : std::nullopt;
    if (!sum) return invalid("lie too far apart");
    last = *sum;
  }
  if (last >= scales.chunks.box(0).volume()) return invalid("end before the values do");
  return {};
}

// The views of a recipe are checked as if they were chunks: disjoint, and complete unless the rest
// is zero.
Status check_recipe(const Plan& plan, std::size_t index, const std::vector<bool>& is_multiplied) {
  const TensorDesc& target = plan.target.tensors[index].desc;
  const TensorRecipe& recipe = plan.tensors[index];
  StoredTensor covered{target, ChunkList(target.shape.size()), Encoding::kRaw};
  for (const TensorView& view : recipe.views) {
    SW_TRY(check_view(plan, target, view));
    covered.chunks.push_back(Chunk{view.box, 0, {}, {}});
    const DType from = plan.source.tensors[view.source].desc.dtype;
    const bool is_possible = is_multiplied[view.source]
                                 ? is_castable_float(target.dtype)
                                 : is_supported({from, target.dtype, recipe.add});
    if (!is_possible) {
      return fail(Code::kDtypeUnsupported, "tensor {}: no conversion from {} to {}", target.name,
                  torch_name(from), torch_name(target.dtype));
    }
  }
  if (recipe.fill.value_or(0.0) != 0.0 && !is_castable_float(target.dtype)) {
    return fail(Code::kDtypeUnsupported, "tensor {}: {} cannot be filled with {}", target.name,
                torch_name(target.dtype), *recipe.fill);
  }
  const Status coverage = check_coverage(covered, Replicas::kForbidden);
  if (!coverage && !(recipe.fill && coverage.error().code == Code::kHole)) {
    return std::unexpected(Error(coverage.error()).within("plan"));
  }
  return {};
}

// Storages of archives must be what the writer takes them for: whole tensors, each used once.
Status check_archives(const Plan& plan) {
  std::vector<bool> used(plan.target.tensors.size(), false);
  for (const TargetArchive& archive : plan.archives) {
    if (archive.file >= plan.target.files.size()) {
      return fail(Code::kPlanInvalid, "plan: an archive in a file that is not there");
    }
    for (const std::uint32_t index : archive.storages) {
      if (index >= used.size() || used[index]) {
        return fail(Code::kPlanInvalid,
                    "plan: archive storage {} belongs to no target tensor, or to two", index);
      }
      used[index] = true;
      const StoredTensor& tensor = plan.target.tensors[index];
      const bool is_whole = tensor.encoding == Encoding::kRaw && tensor.chunks.size() == 1 &&
                            tensor.chunks.file(0) == archive.file &&
                            tensor.chunks.box(0) == Box::whole(tensor.desc.shape);
      if (!is_whole) {
        return fail(Code::kPlanInvalid, "tensor {}: is not a whole storage of its archive",
                    tensor.desc.name);
      }
    }
  }
  return {};
}

}  // namespace

Status check_plan(const Plan& plan) {
  const Catalog& target = plan.target;
  if (plan.tensors.size() != target.tensors.size() ||
      plan.objects.size() != target.objects.size() ||
      plan.file_sizes.size() != target.files.size()) {
    return fail(Code::kPlanInvalid, "plan: recipes and target catalog differ in length");
  }
  SW_TRY(check_archives(plan));
  for (std::size_t i = 0; i < plan.objects.size(); ++i) {
    if (plan.objects[i].is_copy || plan.objects[i].bytes != nullptr) continue;
    return fail(Code::kPlanInvalid, "plan: object {} is new and has no bytes",
                target.objects[i].name);
  }
  std::vector<bool> is_read(plan.source.tensors.size(), false);
  std::vector<bool> is_multiplied(plan.source.tensors.size(), false);
  for (const QuantisedSource& quantised : plan.quantised) {
    SW_TRY(check_quantised(plan, quantised));
    if (is_multiplied[quantised.values]) {
      return fail(Code::kPlanInvalid, "tensor {}: found two tensors of scales for it, expected one",
                  plan.source.tensors[quantised.values].desc.name);
    }
    is_multiplied[quantised.values] = true;
  }
  for (std::size_t i = 0; i < target.tensors.size(); ++i) {
    SW_TRY(check_recipe(plan, i, is_multiplied));
    SW_TRY(check_coverage(target.tensors[i], Replicas::kForbidden));
    for (const TensorView& view : plan.tensors[i].views) is_read[view.source] = true;
  }
  for (std::size_t i = 0; i < is_read.size(); ++i) {
    if (!is_read[i]) continue;
    const Status coverage = check_coverage(plan.source.tensors[i]);
    if (!coverage) return std::unexpected(Error(coverage.error()).within("source"));
  }
  return {};
}

PlanCost cost_of(const Plan& plan) {
  PlanCost cost;
  std::vector<std::uint64_t> scale_bytes(plan.source.tensors.size(), 0);
  std::vector<bool> is_multiplied(plan.source.tensors.size(), false);
  for (const QuantisedSource& quantised : plan.quantised) {
    scale_bytes[quantised.values] = plan.source.tensors[quantised.scales].chunks.range(0).length;
    is_multiplied[quantised.values] = true;
  }
  const std::vector<bool> repeated = repeated_tensors(plan);
  for (std::size_t i = 0; i < plan.tensors.size(); ++i) {
    if (repeated[i]) continue;  // filled with what was read for the one in front
    for (const TensorView& view : plan.tensors[i].views) {
      const DType dtype = plan.source.tensors[view.source].desc.dtype;
      const std::int64_t count = view.box.volume();
      cost.payload_bytes_read += static_cast<std::uint64_t>(
          is_multiplied[view.source] ? stored_bytes(dtype, count) : count * bytes_of(dtype));
      cost.payload_bytes_read += std::exchange(scale_bytes[view.source], 0);
    }
  }
  for (const ObjectRecipe& object : plan.objects) {
    if (object.is_copy) cost.payload_bytes_read += plan.source.objects[object.source].range.length;
  }
  for (const std::uint64_t size : plan.file_sizes) cost.bytes_written += size;
  cost.source_files = plan.source.files.size();
  cost.target_files = plan.target.files.size();
  return cost;
}

}  // namespace shardwright

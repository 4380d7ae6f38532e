// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include "base/fail.h"
#include "shardwright/plan.h"
#include "tensor/convert.h"

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

// The views of a recipe are checked as if they were chunks: disjoint, and complete unless the rest
// is zero.
Status check_recipe(const Plan& plan, std::size_t index) {
  const TensorDesc& target = plan.target.tensors[index].desc;
  const TensorRecipe& recipe = plan.tensors[index];
  StoredTensor covered{target, ChunkList(target.shape.size()), Encoding::kRaw};
  for (const TensorView& view : recipe.views) {
    SW_TRY(check_view(plan, target, view));
    covered.chunks.push_back(Chunk{view.box, 0, {}, {}});
    const DType from = plan.source.tensors[view.source].desc.dtype;
    if (!is_supported({from, target.dtype, recipe.add})) {
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
        return fail(Code::kPlanInvalid, "plan: a storage that is no tensor or another's too");
      }
      used[index] = true;
      const StoredTensor& tensor = plan.target.tensors[index];
      const bool is_whole = tensor.encoding == Encoding::kRaw && tensor.chunks.size() == 1 &&
                            tensor.chunks.file(0) == archive.file &&
                            tensor.chunks.box(0) == Box::whole(tensor.desc.shape);
      if (!is_whole) {
        return fail(Code::kPlanInvalid, "tensor {}: is no whole storage of its archive",
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
  std::vector<bool> is_read(plan.source.tensors.size(), false);
  for (std::size_t i = 0; i < target.tensors.size(); ++i) {
    SW_TRY(check_recipe(plan, i));
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
  for (const TensorRecipe& recipe : plan.tensors) {
    for (const TensorView& view : recipe.views) {
      const DType dtype = plan.source.tensors[view.source].desc.dtype;
      cost.payload_bytes_read += static_cast<std::uint64_t>(view.box.volume() * bytes_of(dtype));
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

// SPDX-License-Identifier: Apache-2.0
#include "convert/target.h"

#include <algorithm>
#include <iterator>

#include "format/hf_index.h"
#include "format/hf_layout.h"
#include "layout/placement.h"

namespace shardwright {
namespace {

std::vector<TensorDesc> descs_of(const std::vector<DraftTensor>& drafts) {
  std::vector<TensorDesc> descs;
  descs.reserve(drafts.size());
  for (const DraftTensor& draft : drafts) descs.push_back(draft.desc);
  return descs;
}

void add_file(const TargetFile& file, Plan& plan) {
  const std::uint32_t index = static_cast<std::uint32_t>(plan.target.files.size());
  plan.target.files.push_back(file.path);
  plan.file_sizes.push_back(file.bytes.size());
  if (!file.bytes.empty()) plan.literals.push_back({index, 0, file.bytes});
}

}  // namespace

void complete(const TargetParts& parts, Plan& plan) {
  for (const TargetFile& file : parts.files) add_file(file, plan);
  for (const auto& [path, source] : parts.artifacts) {
    const std::uint32_t index = static_cast<std::uint32_t>(plan.target.files.size());
    plan.target.files.push_back(path);
    plan.file_sizes.push_back(source.range.length);
    const std::uint32_t from = static_cast<std::uint32_t>(plan.source.objects.size());
    plan.source.objects.push_back(source);
    plan.target.objects.push_back({path, index, {0, source.range.length}});
    plan.objects.push_back({true, from, {}});
  }
}

Result<PlacedParts> place_parts(const TargetParts& parts, const ParallelConfig& parallel) {
  const std::vector<TensorDesc> descs = descs_of(parts.tensors);
  const Placement placement = SW_TRY(Placement::make(descs, parallel));
  PlacedParts placed;
  for (const TensorDesc& desc : descs) {
    placed.tensors.push_back({desc, SW_TRY(placement.place(desc))});
  }
  for (const StoredObject& object : parts.copied_objects) {
    placed.objects.push_back(
        {object.name, object.range.length, placement.rank_of_object(object.name)});
  }
  for (const auto& [name, bytes] : parts.new_objects) {
    placed.objects.push_back({name, bytes.size(), placement.rank_of_object(name)});
  }
  return placed;
}

Status plan_torch_dist(const TargetParts& parts, const PlacedParts& placed, Plan& plan) {
  for (const StoredObject& object : parts.copied_objects) {
    const std::uint32_t from = static_cast<std::uint32_t>(plan.source.objects.size());
    plan.source.objects.push_back(object);
    plan.objects.push_back({true, from, {}});
  }
  for (const auto& [name, bytes] : parts.new_objects) plan.objects.push_back({false, 0, bytes});
  TorchDistLayout layout = SW_TRY(layout_torch_dist(placed.tensors, placed.objects, parts.folder));
  plan.target = std::move(layout.catalog);
  plan.file_sizes = std::move(layout.file_sizes);
  add_file({parts.folder + ".metadata", std::move(layout.metadata)}, plan);
  add_file({parts.folder + "common.pt", parts.common_state}, plan);
  add_file({parts.folder + "metadata.json", torch_dist_marker()}, plan);
  add_file({"latest_checkpointed_iteration.txt", parts.tracker}, plan);
  for (const DraftTensor& draft : parts.tensors) plan.tensors.push_back(draft.recipe);
  complete(parts, plan);
  return {};
}

Status add_safetensors_folder(const std::string& folder, const std::vector<DraftTensor>& tensors,
                              std::uint64_t max_shard_bytes, Plan& plan) {
  HfLayout layout = SW_TRY(layout_hf(descs_of(tensors), max_shard_bytes));
  const std::uint32_t first = static_cast<std::uint32_t>(plan.target.files.size());
  for (const std::string& file : layout.catalog.files) plan.target.files.push_back(folder + file);
  std::ranges::copy(layout.file_sizes, std::back_inserter(plan.file_sizes));
  for (Literal& literal : layout.literals) {
    literal.file += first;
    plan.literals.push_back(std::move(literal));
  }
  for (StoredTensor& tensor : layout.catalog.tensors) {
    tensor.chunks.set_location(0, tensor.chunks.file(0) + first, tensor.chunks.range(0));
    plan.target.tensors.push_back(std::move(tensor));
  }
  if (!layout.index.empty()) add_file({folder + std::string(kHfIndexFile), layout.index}, plan);
  for (const DraftTensor& draft : tensors) plan.tensors.push_back(draft.recipe);
  return {};
}

Status plan_safetensors(const TargetParts& parts, std::uint64_t max_shard_bytes, Plan& plan) {
  SW_TRY(add_safetensors_folder("", parts.tensors, max_shard_bytes, plan));
  complete(parts, plan);
  return {};
}

}  // namespace shardwright

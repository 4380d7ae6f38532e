// SPDX-License-Identifier: Apache-2.0
#include "format/safetensors_folder.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "format/hf/hf_layout.h"
#include "format/weight_names.h"

namespace shardwright {

Status plan_safetensors(TargetParts& parts, std::uint64_t max_shard_bytes, Plan& plan) {
  const std::string& folder = parts.folder;
  HfLayout layout = SW_TRY(layout_hf(descs_of(parts.tensors), max_shard_bytes, parts.weight_stem));
  const std::uint32_t first = static_cast<std::uint32_t>(plan.target.files.size());
  for (const std::string& file : layout.catalog.files) plan.target.files.push_back(folder + file);
  std::ranges::copy(layout.file_sizes, std::back_inserter(plan.file_sizes));
  for (Literal& literal : layout.literals) {
    literal.file += first;
    plan.literals.push_back(std::move(literal));
  }
  plan.target.tensors.reserve(plan.target.tensors.size() + layout.catalog.tensors.size());
  plan.tensors.reserve(plan.tensors.size() + parts.tensors.size());
  for (StoredTensor& tensor : layout.catalog.tensors) {
    tensor.chunks.set_location(0, tensor.chunks.file(0) + first, tensor.chunks.range(0));
    plan.target.tensors.push_back(std::move(tensor));
  }
  if (!layout.index.empty()) {
    add_file({folder + std::string(index_file_of(parts.weight_stem)), std::move(layout.index)},
             plan);
  }
  for (DraftTensor& draft : parts.tensors) plan.tensors.push_back(std::move(draft.recipe));
  parts.tensors = {};
  complete(parts, plan);
  return {};
}

}  // namespace shardwright

// SPDX-License-Identifier: Apache-2.0
#include "format/safetensors/safetensors_target.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/translated.h"
#include "format/hf/hf_layout.h"
#include "format/hf/weight_names.h"
#include "format/mlite/rank_files.h"
#include "format/stored_drafts.h"

namespace shardwright {
namespace {

class SafetensorsTarget : public Target {
 public:
  SafetensorsTarget()
      : Target({.name = "safetensors",
                .names = TargetNames::kStored,
                .has_shard_files = true,
                .holds_objects = false}) {}

  Status draft_stored(const ConvertRequest& request, const Checkpoint& source, Catalog& catalog,
                      TargetParts& parts, std::vector<std::string>& notes) const override {
    SW_TRY(draft_stored_tensors(request, catalog, parts, notes));
    leave_rank_files(source, "safetensors holds tensors only", notes);
    tell_what_stays(source, catalog, notes);
    const std::size_t objects = catalog.objects.size();
    if (objects > 0) {
      notes.push_back(
          translated("{} opaque entries are left out: safetensors holds tensors only", objects));
    }
    return {};
  }

  Status lay_out(const ConvertRequest& request, TargetParts& parts, Plan& plan,
                 std::vector<std::string>& /*notes*/) const override {
    return plan_safetensors(parts, request.max_shard_bytes, plan);
  }
};

}  // namespace

const Target& safetensors_target() {
  static const SafetensorsTarget target;
  return target;
}

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

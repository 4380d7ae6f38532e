// SPDX-License-Identifier: Apache-2.0
#include "format/safetensors/safetensors_target.h"

#include "base/translated.h"
#include "format/mlite/rank_files.h"
#include "format/safetensors_folder.h"
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

}  // namespace shardwright

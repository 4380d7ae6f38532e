// SPDX-License-Identifier: Apache-2.0
#include "format/hf/hf_target.h"

#include <algorithm>
#include <limits>
#include <string>

#include "base/fail.h"
#include "format/safetensors_folder.h"

namespace shardwright {
namespace {

constexpr std::string_view kModelFile = "model.safetensors";
constexpr std::string_view kAdapterFile = "adapter_model.safetensors";

class HfTarget : public Target {
 public:
  HfTarget()
      : Target({.name = "hf",
                .names = TargetNames::kHf,
                .holds_optimizer = false,
                .has_shard_files = true}) {}

  Status lay_out(const ConvertRequest& request, TargetParts& parts, Plan& plan,
                 std::vector<std::string>& /*notes*/) const override {
    if (!parts.is_adapter) return plan_safetensors(parts, request.max_shard_bytes, plan);
    // PEFT reads one file, of its own name.
    SW_TRY(plan_safetensors(parts, std::numeric_limits<std::uint64_t>::max(), plan));
    std::ranges::replace(plan.target.files, std::string(kModelFile), std::string(kAdapterFile));
    return {};
  }
};

}  // namespace

const Target& hf_target() {
  static const HfTarget target;
  return target;
}

}  // namespace shardwright

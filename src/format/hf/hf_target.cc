// SPDX-License-Identifier: Apache-2.0
#include "format/hf/hf_target.h"

#include "format/safetensors/safetensors_target.h"

namespace shardwright {
namespace {

class HfTarget : public Target {
 public:
  HfTarget()
      : Target({.name = "hf",
                .names = TargetNames::kHf,
                .holds_optimizer = false,
                .has_shard_files = true}) {}

  Status lay_out(const ConvertRequest& request, TargetParts& parts, Plan& plan,
                 std::vector<std::string>& /*notes*/) const override {
    return plan_safetensors(parts, request.max_shard_bytes, plan);
  }
};

}  // namespace

const Target& hf_target() {
  static const HfTarget target;
  return target;
}

}  // namespace shardwright

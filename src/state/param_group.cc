// SPDX-License-Identifier: Apache-2.0
#include "state/param_group.h"

#include <string>

namespace shardwright {
namespace {

using pickle::Value;

// NeMo calls them `pre_wd_mult`.
Value find_factor(Value group, std::string_view name) {
  const Value plain = group.find(name);
  return plain ? plain : group.find("pre_" + std::string(name));
}

}  // namespace

OptimizerGroup read_param_group(Value group) {
  OptimizerGroup result;
  result.is_expert = group.find("is_expert_parallel").as_bool().value_or(false);
  const Value factor = find_factor(group, "wd_mult");
  const Value decay = factor ? factor : group.find("weight_decay");
  result.has_decay = decay.as_double().value_or(1.0) != 0.0;
  result.has_own_rate = group.find("is_decoupled_lr").as_bool().value_or(false) ||
                        !group.find("default_config").as_bool().value_or(true);
  // Some say neither, and tell nothing by that.
  const bool has_momentum =
      static_cast<bool>(group.find("momentum")) || static_cast<bool>(group.find("momentum_beta"));
  result.has_betas = static_cast<bool>(group.find("betas")) || !has_momentum;
  result.parameters = group.find("params").size();
  return result;
}

}  // namespace shardwright

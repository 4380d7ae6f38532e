// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "shardwright/checkpoint.h"

namespace shardwright {

/// Adds the optimizer's states to the catalog of a legacy checkpoint, as torch_dist names them:
/// `optimizer.state.param.` and the parameter's canonical name, likewise `exp_avg` and
/// `exp_avg_sq`; and its parameter groups to the common state. That a master weight is its
/// parameter's is not proven here: a conversion compares them. Errors: kLegacyLayout,
/// kOptimizerUnsupported, those of LegacyRanks: of each rank's files one, told to `defects`.
[[nodiscard]] Status read_legacy_optimizer(Checkpoint& checkpoint, Defects& defects);

}  // namespace shardwright

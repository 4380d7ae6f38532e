// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "shardwright/error.h"

namespace shardwright {

/// The steps that an optimizer which is not distributed has made with all its parameters, a number
/// or a tensor of one: `common_step` among the states in torch_dist's common state (Megatron-Core's
/// Float16OptimizerWithFloat16Params and FP32Optimizer). Nothing where no optimizer keeps one.
/// Error: kStateUnreadable for a tensor of another kind, and for what is no number of steps.
[[nodiscard]] Result<std::optional<double>> common_step(const std::string& common_state);

}  // namespace shardwright

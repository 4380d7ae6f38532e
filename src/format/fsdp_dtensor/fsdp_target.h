// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "format/target_format.h"

namespace shardwright {

/// Megatron-FSDP's directory. Its entries are one tensor for each layer, expert and half of a gated
/// linear_fc1; the optimizer's main weights, where there are any, as the model; states and settings
/// of each parameter. What Megatron-FSDP does not save is left out and told. Errors:
/// kUnmatchedSource, and those of split_common_state.
[[nodiscard]] const Target& fsdp_dtensor_target();

}  // namespace shardwright

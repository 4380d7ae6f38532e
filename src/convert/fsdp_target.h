// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "convert/target.h"

namespace shardwright {

/// Turns Megatron tensors and a common state, as finish_from_megatron and finish_from_hf leave
/// them, into the entries of an fsdp_dtensor checkpoint: one tensor for each layer, expert and half
/// of a gated linear_fc1; the optimizer's main weights, where there are any, as the model; states
/// and settings of each parameter. What Megatron-FSDP does not save is left out and told. Errors:
/// kUnmatchedSource, and those of split_common_state.
[[nodiscard]] Status make_fsdp_entries(const ConvertRequest& request, TargetParts& parts,
                                       std::vector<std::string>& notes);

}  // namespace shardwright

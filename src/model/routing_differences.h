// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "model/arguments.h"
#include "model/mapping_file.h"

namespace shardwright {

/// How Megatron-Core's router weighs and chooses experts otherwise than the model of a config.json,
/// although the arguments say what they can: sentences without full stop, for notes of either
/// direction. `hf`: the config's values in the mapping's section. Pure. Sources:
/// group_limited_topk, topk_routing_with_score_function and apply_router_token_dropping in
/// megatron/core/transformer/moe/moe_utils.py, TopKRouter in router.py.
[[nodiscard]] std::vector<std::string> routing_differences(const Mapping& mapping,
                                                           const Arguments& hf,
                                                           const Arguments& args);

/// Megatron-Core builds no router that takes the softmax of one chosen expert, whose weight would
/// be 1 (transformer_config.py, `moe_router_pre_softmax`): sets that it comes first, and returns
/// what is computed otherwise then. Empty where there is no such router.
[[nodiscard]] std::string put_softmax_first(ArgumentList& args);

/// Error: kConfigMissing where each token goes to several experts and weights are applied to their
/// input, of which Megatron-Core builds no model.
[[nodiscard]] Status check_weighted_inputs(const Mapping& mapping, const Arguments& args);

}  // namespace shardwright

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "plan/draft.h"

namespace shardwright {

/// Whether a tensor of an adapter is of a parameter that holds all experts: A is [experts, rank,
/// inputs], B [experts, outputs, rank].
[[nodiscard]] bool is_of_expert_parameter(std::string_view name);

/// What of them PEFT is to target: `mlp.experts.down_proj`, or where layers differ whole names.
[[nodiscard]] std::set<std::string> expert_parameters(const std::vector<DraftTensor>& tensors);

/// Gives them the form that PEFT stores them in: A [experts · rank, inputs], expert after expert, B
/// [outputs, rank · experts], whose columns are dealt out to the experts; where both parameters of
/// a layer have one, that of `gate_up_proj` lies inside. Source: ParamWrapper of PEFT's
/// `lora/layer.py`.
void store_expert_parameters(std::vector<DraftTensor>& tensors);

}  // namespace shardwright

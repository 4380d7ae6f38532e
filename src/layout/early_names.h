// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace shardwright {

/// The name that Megatron-Core's modules (Transformer Engine's) give a tensor of a model from
/// before Megatron-Core, whose nested dicts are joined with dots:
/// `language_model.encoder.layers.3.attention.query_key_value.weight` becomes
/// `decoder.layers.3.self_attention.linear_qkv.weight`. Layers keep their numbers. Names that no
/// Megatron-Core model has come back as they are. Source: tools/checkpoint of Megatron-LM.
[[nodiscard]] std::string core_name_of_early(std::string_view name);

/// Whether a rule gives it Megatron-Core's name.
[[nodiscard]] bool is_early_name(std::string_view name);

}  // namespace shardwright

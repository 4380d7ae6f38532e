// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/argument_check.h"
#include "model/config.h"
#include "shardwright/tensor.h"

namespace shardwright {

/// What a config.json says of the model and its tensors contradict, by the keys that most
/// architectures share (`num_hidden_layers`, `hidden_size`, `num_attention_heads` and so on): sizes
/// that no model has, heads that do not divide, and numbers that no layer shows. No family is
/// needed for that, so it also speaks of architectures of which no mapping does.
///
/// `hf`: the model's tensors, without those of quantisation. Tensors are looked at where the
/// embedding says how the layers beside it are called (`model.embed_tokens.weight` and
/// `model.layers.N.`); of a multimodal model that is its language model, and contradicted_towers()
/// looks at the rest. What may differ from layer to layer is contradicted only if no layer shows
/// it. One contradiction for each key. Pure.
[[nodiscard]] std::vector<Contradiction> contradicted_config(const HfConfig& config,
                                                             std::span<const TensorDesc> hf);

/// That it says of more experts than the model has, or of none, that each token goes to them. No
/// token can be computed then, but no tensor is contradicted. Pure.
[[nodiscard]] std::vector<Contradiction> impossible_choices(const HfConfig& config);

/// That config.json names a dtype which none of these tensors has, a sentence; empty where one has
/// it, nothing is named, or some are quantised. Loaders cast all of them to it, unasked.
[[nodiscard]] std::string contradicted_dtype(std::string_view config_json,
                                             std::span<const TensorDesc> hf);

/// That config.json says how weights are quantised and all of these tensors, which are all of the
/// files', are plain, a sentence; empty where some are quantised or nothing says so.
[[nodiscard]] std::string contradicted_quantisation(std::string_view config_json,
                                                    std::span<const TensorDesc> hf);

}  // namespace shardwright

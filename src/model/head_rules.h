// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "model/config.h"
#include "model/instances.h"
#include "model/mapping_file.h"

namespace shardwright {

/// The name that the class of a model has for the head of a reward, value or classification model
/// (`score`); empty where config.json names a language model.
[[nodiscard]] std::string head_module(const HfConfig& config);

/// Whether an argument is about the head that such an architecture has replaced by its own: whether
/// its embeddings were tied says nothing of that one.
[[nodiscard]] bool is_of_replaced_head(const HfConfig& config, std::string_view argument);

/// The architecture whose model has the same layers: LlamaForCausalLM's for
/// LlamaForSequenceClassification. Empty for what is no head's.
[[nodiscard]] std::string headless_stem(std::string_view architecture);

/// `mapping` for a model that gives rewards, values or classes; nullopt where `hf` shows none, in
/// any family whose Megatron models have an output layer. One linear (`score.weight`, with a bias
/// or without) is Megatron's output layer, where trainers put it; what stands beside a language
/// model's own head (trl's `v_head.summary`), or has several layers, keeps its names. Error:
/// kUnmatchedSource for a head in the output layer's place beside the language model's.
[[nodiscard]] Result<std::optional<Mapping>> with_head_of_hf(const Mapping& mapping,
                                                             const TensorIndex& hf);

/// The same of canonical tensors: an output layer is a head if it has other rows than the
/// embedding. `wanted` (may be null) tells its name, else `module` does, else it is `score`.
[[nodiscard]] Result<std::optional<Mapping>> with_head_of_megatron(const Mapping& mapping,
                                                                   const TensorIndex& canonical,
                                                                   const TensorIndex* wanted,
                                                                   std::string_view module);

/// Whether the rows of a head are the labels that config.json tells, where it tells them. Error:
/// kShapeMismatch naming both.
[[nodiscard]] Status check_labels(const HfConfig& config, std::span<const TensorDesc> hf);

}  // namespace shardwright

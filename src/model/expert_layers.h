// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/arguments.h"
#include "shardwright/error.h"

namespace shardwright {

/// Per layer 1 where the MLP has experts, 0 where it is dense.
using ExpertLayers = std::vector<std::int64_t>;

/// The first `dense` layers have none; of the others those that `step` divides have (DeepSeek).
[[nodiscard]] ExpertLayers experts_after_dense(std::int64_t dense, std::int64_t step,
                                               std::int64_t layers);
/// Which step makes these layers of their leading dense ones, if any up to `most` does.
[[nodiscard]] std::optional<std::int64_t> step_after_dense(const ExpertLayers& experts,
                                                           std::int64_t most);
/// Layers `step`, 2·`step` and so on, counted from 1, but for those listed (Qwen).
[[nodiscard]] ExpertLayers experts_each_step(std::int64_t step, std::span<const std::int64_t> dense,
                                             std::int64_t layers);
/// Layers `interval`, 2·`interval` and so on, counted from 1, if their index is `first` to `last`;
/// a negative `last` is the last layer (ERNIE).
struct ExpertRange {
  std::int64_t first = 0;
  std::int64_t last = -1;
  std::int64_t interval = 1;
};
[[nodiscard]] ExpertLayers experts_in(const ExpertRange& range, std::int64_t layers);
/// That of these layers, if there is one; of none it is empty.
[[nodiscard]] std::optional<ExpertRange> expert_range_of(const ExpertLayers& experts);
/// The layers of these numbers, counted from 0 (Llama 4).
[[nodiscard]] ExpertLayers experts_numbered(std::span<const std::int64_t> numbers,
                                            std::int64_t layers);
/// Layers that a list with an entry for each calls "sparse", where dense ones are "dense" (`name`:
/// the list's, for messages). Error: kConfigMissing, for other words and other lengths.
[[nodiscard]] Result<ExpertLayers> experts_of_types(std::string_view name,
                                                    const std::vector<std::string>& types,
                                                    std::int64_t layers);
[[nodiscard]] std::vector<std::string> to_mlp_types(const ExpertLayers& experts);

/// How many layers have none before the first that has.
[[nodiscard]] std::int64_t leading_dense(const ExpertLayers& experts);

/// Megatron's `moe_layer_freq`: one number where all layers are alike, because a list makes
/// Megatron name every layer.
[[nodiscard]] ArgValue to_layer_frequency(ExpertLayers experts);
/// `frequency` may be null, for an argument that is missing: all layers have experts.
[[nodiscard]] ExpertLayers from_layer_frequency(const ArgValue* frequency, std::int64_t layers);

}  // namespace shardwright

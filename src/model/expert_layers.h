// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/arguments.h"

namespace shardwright {

/// Per layer 1 where the MLP has experts, 0 where it is dense.
using ExpertLayers = std::vector<std::int64_t>;

/// The first `dense` layers have none; of the others those that `step` divides have (DeepSeek).
[[nodiscard]] ExpertLayers experts_after_dense(std::int64_t dense, std::int64_t step,
                                               std::int64_t layers);
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

/// Megatron's `moe_layer_freq`: one number where all layers are alike, because a list makes
/// Megatron name every layer.
[[nodiscard]] ArgValue to_layer_frequency(ExpertLayers experts);
/// `frequency` may be null, for an argument that is missing: all layers have experts.
[[nodiscard]] ExpertLayers from_layer_frequency(const ArgValue* frequency, std::int64_t layers);

}  // namespace shardwright

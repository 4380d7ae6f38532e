// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/arguments.h"
#include "model/mapping_file.h"

namespace shardwright {

/// More than any model has: what claims more is a mistake, or means harm.
inline constexpr std::int64_t kMaxLayers = std::int64_t{1} << 16;

/// What each layer of a hybrid model is, in HF's words: `linear_attention`, `full_attention`, and
/// where a layer is a single block also `mlp` and `moe`. One entry per layer.
using LayerKinds = std::vector<std::string>;

/// Reads the list of a rule of kind kLinearAttention or kBlockPattern, or its shorter form (an
/// interval, a letter per layer). Both must agree. `layers`: how many the model has. Nothing where
/// config.json has neither form and the rule no default. Error: kConfigMissing.
[[nodiscard]] Result<std::optional<LayerKinds>> layer_kinds_from_hf(const ConfigRule& rule,
                                                                    const Arguments& hf,
                                                                    std::int64_t layers);

/// The argument that says so: a number of layers per full attention where they alternate evenly,
/// else a list with 1 for linear attention; or a letter per layer.
[[nodiscard]] ArgValue layer_kinds_argument(const ConfigRule& rule, const LayerKinds& kinds);

/// Reads that argument. Error: kConfigMissing.
[[nodiscard]] Result<LayerKinds> layer_kinds_from_argument(const ConfigRule& rule,
                                                           const ArgValue& argument,
                                                           std::int64_t layers);

}  // namespace shardwright

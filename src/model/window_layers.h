// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/arguments.h"
#include "shardwright/error.h"

namespace shardwright {

/// Per layer 1 where attention has the sliding window, 0 where it sees everything.
using WindowedLayers = std::vector<std::int64_t>;

/// Layer `period`, 2·`period` and so on are whole, the others have the window.
/// REQUIRES: period > 0, layers >= 0.
[[nodiscard]] WindowedLayers every_so_many_whole(std::int64_t period, std::int64_t layers);

/// config.json's `layer_types`. Errors: kConfigMissing for another number of layers, or attention
/// other than `sliding_attention` and `full_attention`.
[[nodiscard]] Result<WindowedLayers> from_layer_types(const std::vector<std::string>& types,
                                                      std::int64_t layers);
[[nodiscard]] std::vector<std::string> to_layer_types(const WindowedLayers& windowed);

/// Megatron's `window_attn_skip_freq`: None where all have the window, a number where every so
/// many-th layer is whole, else the list.
[[nodiscard]] ArgValue to_skip_frequency(WindowedLayers windowed);
/// Error: kConfigMissing for a list of another length or a number below 1.
[[nodiscard]] Result<WindowedLayers> from_skip_frequency(const ArgValue& frequency,
                                                         std::int64_t layers);

/// The argument `interleaved_attn_pattern`: how many layers with a window and how many without
/// alternate, or a word for each layer.
[[nodiscard]] ArgValue to_attention_pattern(const WindowedLayers& windowed);

/// Reads either argument. Error: kConfigMissing.
[[nodiscard]] Result<WindowedLayers> from_window_argument(const ArgValue& argument,
                                                          std::int64_t layers);

/// The argument of a run that says which layers have a window, or nullptr.
[[nodiscard]] const ArgValue* window_argument(const Arguments& arguments);

}  // namespace shardwright

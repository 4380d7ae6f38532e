// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace shardwright {

/// A Megatron name split at its layer stack: `decoder.layers.7.mlp.router.weight` is
/// {`decoder.layers`, 7, `mlp.router.weight`}; a stacked name has no index (its tensors' first axis
/// counts layers).
struct LayerName {
  std::string_view stack;
  std::optional<std::int64_t> index;
  std::string_view rest;
};

/// Splits at the first `.layers.`, or nullopt for names outside layer stacks. Borrows `name`.
[[nodiscard]] std::optional<LayerName> split_layer_name(std::string_view name);

/// `decoder.layers` + 7 + `mlp.router.weight`.
[[nodiscard]] std::string join_layer_name(std::string_view stack, std::int64_t index,
                                          std::string_view rest);

}  // namespace shardwright

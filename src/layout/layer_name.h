// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "shardwright/tensor.h"

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

/// Whether that is the stack that pipeline stages share out, of a model's own names: a vision
/// tower's layers (`vision_model.decoder.layers`) lie whole on one stage.
[[nodiscard]] bool is_main_stack(std::string_view stack);

/// How many layers a stack of numbered names has; 0 without any. Counts the main stack only.
[[nodiscard]] std::int64_t count_main_layers(std::span<const TensorDesc> tensors);

/// `decoder.layers` + 7 + `mlp.router.weight`.
[[nodiscard]] std::string join_layer_name(std::string_view stack, std::int64_t index,
                                          std::string_view rest);

}  // namespace shardwright

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

/// Splits at the first `.layers.` or `.deepstack_merger_list.`, or nullopt for names outside such
/// lists. Borrows `name`.
[[nodiscard]] std::optional<LayerName> split_layer_name(std::string_view name);

/// The module that only layers of one kind have, where torch_dist stacks these by themselves
/// (Gemma 4's `self_attention_sliding`, `self_attention_global`), from what follows the layer's
/// number; empty for what all layers have.
[[nodiscard]] std::string_view kind_of_layer(std::string_view rest);

/// Both kinds of such modules: with a sliding window, and without.
inline constexpr std::string_view kSlidingAttention = "self_attention_sliding";
inline constexpr std::string_view kGlobalAttention = "self_attention_global";

/// Whether torch_dist stacks the layers of that stack where they are alike.
[[nodiscard]] bool is_stackable(std::string_view stack);

/// Whether that is the stack that pipeline stages share out, of a model or its optimizer states: a
/// vision tower's layers (`vision_model.decoder.layers`) lie whole on one stage.
[[nodiscard]] bool is_main_stack(std::string_view stack);

/// Whether that is the stack of a main one whose layers read: BERT's only one, and T5's beside its
/// decoder's. Stages share out each of the two by itself.
[[nodiscard]] bool is_encoder_stack(std::string_view stack);

/// Whether a tensor belongs to a module that Megatron takes from HF as it is, such as a vision
/// tower: it keeps its names, is never stacked and every rank has the whole of it.
[[nodiscard]] bool is_in_foreign_module(std::string_view name);

/// Whether that is what follows the layers on the last pipeline stage: their norm, an output layer,
/// the heads of BERT, and those of reward, value and classification models.
[[nodiscard]] bool is_behind_layers(std::string_view name);

/// Whether every pipeline stage has it: what Wan makes of time and text, which each layer needs,
/// and T5's relative positions.
[[nodiscard]] bool is_on_each_stage(std::string_view name);

/// Whether that is a tensor of a layer for multi-token prediction (`mtp.layers.N.`), or of the part
/// that drafts tokens (`dspark.`), or its state.
[[nodiscard]] bool is_prediction_layer(std::string_view name);

/// How many layers the main stacks have, numbered or stacked; 0 without any.
struct MainLayers {
  std::int64_t decoder = 0;
  std::int64_t encoder = 0;
};
[[nodiscard]] MainLayers main_layers(std::span<const TensorDesc> tensors);

/// How many layers a stack of numbered names has; 0 without any. Of both main ones that with more.
[[nodiscard]] std::int64_t count_main_layers(std::span<const TensorDesc> tensors);

/// `decoder.layers` + 7 + `mlp.router.weight`.
[[nodiscard]] std::string join_layer_name(std::string_view stack, std::int64_t index,
                                          std::string_view rest);

}  // namespace shardwright

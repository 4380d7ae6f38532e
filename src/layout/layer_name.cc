// SPDX-License-Identifier: Apache-2.0
#include "layout/layer_name.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>

#include "layout/model_head.h"
#include "layout/state_name.h"
#include "layout/wrapped_name.h"

namespace shardwright {
namespace {

// What lists of modules are called that torch_dist stacks.
constexpr std::array<std::string_view, 2> kLists = {"layers.", "deepstack_merger_list."};

// BERT's layers, and those of T5 that read. Towers have theirs behind a name of their own.
constexpr std::string_view kEncoderLayers = "encoder.layers";

// The end of the first list's name, or npos.
std::size_t end_of_stack(std::string_view name) {
  std::size_t first = std::string_view::npos;
  for (const std::string_view list : kLists) {
    std::size_t at = name.find(list);
    while (at != std::string_view::npos && at != 0 && name[at - 1] != '.') {
      at = name.find(list, at + 1);
    }
    if (at != std::string_view::npos) first = std::min(first, at + list.size() - 1);
  }
  return first;
}

// The name of a tensor, or what the name of its optimizer state says of it.
std::string_view of_model(std::string_view name) {
  const std::optional<StateName> state = split_state_name(name);
  return state ? state->tensor : name;
}

}  // namespace

std::optional<LayerName> split_layer_name(std::string_view name) {
  const std::size_t stack = end_of_stack(name);
  if (stack == std::string_view::npos) return std::nullopt;
  LayerName parts{name.substr(0, stack), std::nullopt, name.substr(stack + 1)};
  const std::size_t dot = parts.rest.find('.');
  const std::string_view first = parts.rest.substr(0, dot);
  std::int64_t index = 0;
  const auto [end, error] = std::from_chars(first.data(), first.data() + first.size(), index);
  // One that can't be counted to is no layer's.
  const bool is_number = index >= 0 && index < std::numeric_limits<std::int64_t>::max();
  if (error == std::errc() && end == first.data() + first.size() && is_number &&
      dot != std::string_view::npos) {
    parts.index = index;
    parts.rest.remove_prefix(dot + 1);
  }
  return parts;
}

std::string_view kind_of_layer(std::string_view rest) {
  const std::string_view module = rest.substr(0, rest.find('.'));
  return module == kSlidingAttention || module == kGlobalAttention ? module : std::string_view();
}

bool is_stackable(std::string_view stack) {
  return of_model(stack) == kEncoderLayers ||
         (stack.ends_with("decoder.layers") && !is_prediction_layer(stack)) ||
         stack.ends_with("deepstack_merger_list");
}

bool is_main_stack(std::string_view stack) {
  stack = unwrapped(of_model(stack));
  return stack == "decoder.layers" || stack == "language_model.decoder.layers" ||
         stack == kEncoderLayers;
}

bool is_encoder_stack(std::string_view stack) {
  return unwrapped(of_model(stack)) == kEncoderLayers;
}

bool is_in_foreign_module(std::string_view name) {
  constexpr std::array<std::string_view, 8> kTowers = {
      "visual.",          "vision_tower.", "embed_vision.",
      "audio_tower.",     "embed_audio.",  "vision_model.transformer.",
      "resampler_model.", "sound_model."};
  // transformers' own, which slime trains in the place of an attention.
  constexpr std::array<std::string_view, 2> kInAttention = {".self_attention.linear_attn",
                                                            ".self_attention.input_layernorm"};
  const auto is_there = [&](std::string_view module) { return name.contains(module); };
  if (std::ranges::any_of(kInAttention, is_there)) return true;
  // Elsewhere an audio_model may be built of Megatron's own layers.
  const std::string_view inner = unwrapped(name);
  if (inner != name && inner.starts_with("audio_model.")) return true;
  return std::ranges::any_of(kTowers,
                             [&](std::string_view tower) { return inner.starts_with(tower); });
}

bool is_behind_layers(std::string_view name) {
  // BERT's and T5's, and Wan's; those of towers have other places.
  constexpr std::array<std::string_view, 6> kOwnEnds = {
      "encoder.final_", "lm_head.", "pooler.", "binary_head.", "head.head.", "head.modulation"};
  const std::string_view own = unwrapped(of_model(name));
  constexpr std::string_view kLanguage = "language_model.";
  return name.find("output_layer.") != std::string_view::npos ||
         name.find("decoder.final_") != std::string_view::npos || is_in_head(own) ||
         (own.starts_with(kLanguage) && is_in_head(own.substr(kLanguage.size()))) ||
         std::ranges::any_of(kOwnEnds, [&](std::string_view end) { return own.starts_with(end); });
}

bool is_on_each_stage(std::string_view name) {
  constexpr std::array<std::string_view, 5> kParts = {
      "text_embedding.", "time_embedder.", "time_proj.",          // Wan's
      "encoder_relative_pos_emb.", "decoder_relative_pos_emb."};  // T5's
  const std::string_view own = unwrapped(of_model(name));
  return std::ranges::any_of(kParts, [&](std::string_view part) { return own.starts_with(part); });
}

bool is_prediction_layer(std::string_view name) {
  return name.starts_with("mtp.layers.") || name.find(".mtp.layers.") != std::string_view::npos ||
         of_model(name).starts_with("dspark.");
}

MainLayers main_layers(std::span<const TensorDesc> tensors) {
  MainLayers layers;
  for (const TensorDesc& tensor : tensors) {
    const std::optional<LayerName> layer = split_layer_name(tensor.name);
    if (!layer || !is_main_stack(layer->stack) || tensor.shape.empty()) continue;
    std::int64_t& count = is_encoder_stack(layer->stack) ? layers.encoder : layers.decoder;
    count = std::max(count, layer->index ? *layer->index + 1 : tensor.shape[0]);
  }
  return layers;
}

std::int64_t count_main_layers(std::span<const TensorDesc> tensors) {
  std::int64_t layers = 0;
  for (const TensorDesc& tensor : tensors) {
    const std::optional<LayerName> layer = split_layer_name(tensor.name);
    if (layer && layer->index && is_main_stack(layer->stack)) {
      layers = std::max(layers, *layer->index + 1);
    }
  }
  return layers;
}

std::string join_layer_name(std::string_view stack, std::int64_t index, std::string_view rest) {
  return fmt::format("{}.{}.{}", stack, index, rest);
}

}  // namespace shardwright

// SPDX-License-Identifier: Apache-2.0
#include "layout/plain_norms.h"

#include <algorithm>
#include <iterator>

#include "layout/layer_name.h"
#include "layout/state_name.h"

namespace shardwright {
namespace {

constexpr std::string_view kInputNorm = ".input_layernorm.";
constexpr std::string_view kMlpNorm = ".pre_mlp_layernorm.";
constexpr std::string_view kAttention = ".self_attention.linear_qkv.";
constexpr std::string_view kNormOfQkv = "layer_norm_";

using LayerNames = std::set<std::string_view>;

// What stands before `part` in the names that end with it.
LayerNames layers_before(std::string_view part, std::span<const TensorDesc> tensors) {
  LayerNames layers;
  for (const TensorDesc& tensor : tensors) {
    const std::string_view name = tensor.name;
    if (name.ends_with(part)) layers.insert(name.substr(0, name.size() - part.size()));
  }
  return layers;
}

// Queries, keys and values may lie in a wrapper that adapts them.
LayerNames attending_layers(std::span<const TensorDesc> tensors) {
  LayerNames layers;
  for (const TensorDesc& tensor : tensors) {
    const std::string_view name = tensor.name;
    const std::size_t at = name.find(kAttention);
    if (at == std::string_view::npos) continue;
    if (!name.substr(at + kAttention.size()).starts_with(kNormOfQkv)) {
      layers.insert(name.substr(0, at));
    }
  }
  return layers;
}

// Those with a mixer of Megatron-Core's that fuses its own norm (in_proj).
LayerNames projecting_layers(std::span<const TensorDesc> tensors) {
  LayerNames layers;
  for (const std::string_view module : layers_before(".in_proj.weight", tensors)) {
    layers.insert(module.substr(0, module.rfind('.')));
  }
  return layers;
}

}  // namespace

ScaledLayers::ScaledLayers(std::span<const TensorDesc> tensors) {
  for (const std::string_view scale : {".layer_scalar", ".ls1"}) {
    for (const std::string_view layer : layers_before(scale, tensors)) layers_.emplace(layer);
  }
}

bool ScaledLayers::have(std::string_view name) const {
  const auto before = layers_.upper_bound(name);
  if (before == layers_.begin()) return false;
  const std::string& layer = *std::prev(before);
  const bool is_there = name.starts_with(layer);
  return is_there && (name.size() == layer.size() || name[layer.size()] == '.');
}

VisionLayers::VisionLayers(std::span<const TensorDesc> tensors) {
  for (const std::string_view positions : {"position_embeddings", "position_embeddings.weight"}) {
    for (const std::string_view tower : layers_before(positions, tensors)) towers_.emplace(tower);
  }
}

bool VisionLayers::have(std::string_view name) const {
  if (const auto state = split_state_name(name)) name = state->tensor;
  const std::size_t at = name.find("decoder.layers.");
  return at != std::string_view::npos && at > 0 && towers_.contains(name.substr(0, at));
}

PlainNorms::PlainNorms(std::span<const TensorDesc> tensors) : scaled_(tensors), vision_(tensors) {
  const LayerNames normed = layers_before(".input_layernorm.weight", tensors);
  const LayerNames attending = attending_layers(tensors);
  const auto is_own = [&](std::string_view layer) {
    return is_in_foreign_module(layer) || scaled_.have(layer) || vision_.have(layer);
  };
  for (const std::string_view layer : normed) {
    if (attending.contains(layer) && !is_own(layer)) before_attention_.emplace(layer);
  }
  has_any_ = !before_attention_.empty();
  // Layers of a stage may all have another mixer: then only a norm in front of a dense MLP
  // tells, and only beside a mixer of Megatron-Core's. Other mixers come with layers whose norms
  // have one name (Kimi's delta attention), as latent attention does.
  const bool is_latent = std::ranges::any_of(tensors, [](const TensorDesc& tensor) {
    return tensor.name.find(".linear_kv_down_proj.") != std::string::npos;
  });
  if (has_any_ || is_latent) return;
  const LayerNames dense = layers_before(".mlp.linear_fc1.weight", tensors);
  const LayerNames projecting = projecting_layers(tensors);
  const LayerNames before_mlp = layers_before(".pre_mlp_layernorm.weight", tensors);
  has_any_ = std::ranges::any_of(before_mlp, [&](std::string_view layer) {
    const bool has_another = normed.contains(layer) && !projecting.contains(layer);
    return dense.contains(layer) && !has_another && !is_own(layer);
  });
}

bool PlainNorms::has(std::string_view name) const {
  if (!has_any_) return false;
  if (const std::size_t at = name.find(kInputNorm); at != std::string_view::npos) {
    return before_attention_.contains(name.substr(0, at));
  }
  const bool is_before_mlp = name.find(kMlpNorm) != std::string_view::npos;
  return is_before_mlp && !is_in_foreign_module(name) && !scaled_.have(name) && !vision_.have(name);
}

}  // namespace shardwright

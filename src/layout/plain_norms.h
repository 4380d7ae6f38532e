// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include "shardwright/tensor.h"

namespace shardwright {

/// The layers that scale what they add (InternViT's) or give (Gemma 4's): what their norms are
/// called does not depend on the spec of their modules.
class ScaledLayers {
 public:
  ScaledLayers() = default;
  explicit ScaledLayers(std::span<const TensorDesc> tensors);

  /// Whether that is one, or a tensor of one.
  [[nodiscard]] bool have(std::string_view name) const;

 private:
  std::set<std::string, std::less<>> layers_;
};

/// The layers of the towers that Megatron-Core builds itself (CLIPViTModel, RADIOViTModel), told by
/// the positions that these learn. The local spec of such layers, other than a GPT's, has no
/// sharded_state_dict_keys_map: torch_dist has their norms under the modules' names. Source:
/// megatron/core/models/vision/vit_layer_specs.py.
class VisionLayers {
 public:
  VisionLayers() = default;
  explicit VisionLayers(std::span<const TensorDesc> tensors);

  /// Whether that is one, a tensor of one or a tensor's optimizer state.
  [[nodiscard]] bool have(std::string_view name) const;

 private:
  std::set<std::string, std::less<>> towers_;  // `vision_model.`
};

/// The norms of a state dict that Megatron-Core's own modules keep apart and that torch_dist names
/// as if they were fused into the linear behind them.
class PlainNorms {
 public:
  explicit PlainNorms(std::span<const TensorDesc> tensors);

  [[nodiscard]] bool has_any() const { return has_any_; }
  /// Whether a norm of that name is one: layers may stand among others whose norms have one name.
  [[nodiscard]] bool has(std::string_view name) const;

 private:
  ScaledLayers scaled_;
  VisionLayers vision_;
  std::set<std::string, std::less<>> before_attention_;  // layers whose first norm is one
  bool has_any_ = false;
};

}  // namespace shardwright

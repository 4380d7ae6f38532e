// SPDX-License-Identifier: Apache-2.0
#include "layout/tower.h"

#include <algorithm>
#include <array>

#include "layout/model_head.h"
#include "layout/wrapped_name.h"

namespace shardwright {

std::string_view tower_of(std::string_view name) {
  // A model inside a wrapper has one size for all of it.
  if (unwrapped(name) != name || is_in_head(name)) return {};
  constexpr std::array<std::string_view, 5> kLanguage = {"language_model", "decoder", "embedding",
                                                         "output_layer", "mtp"};
  const std::string_view first = name.substr(0, name.find('.'));
  return std::ranges::find(kLanguage, first) == kLanguage.end() ? first : std::string_view();
}

std::int64_t tensor_size_of(std::string_view name, const TowerSizes& sizes,
                            std::int64_t otherwise) {
  const auto found = sizes.find(tower_of(name));
  return found == sizes.end() ? otherwise : found->second;
}

std::int64_t tensor_size_of(std::string_view name, const ParallelConfig& config) {
  const bool is_apart = config.encoder_tensor > 0 && !tower_of(name).empty();
  return is_apart ? config.encoder_tensor : config.tensor;
}

std::optional<std::int64_t> tower_width(std::span<const TensorDesc> tensors,
                                        std::string_view tower) {
  for (const TensorDesc& tensor : tensors) {
    const std::string_view name = tensor.name;
    const bool is_input = name.ends_with(".self_attention.linear_qkv.weight") ||
                          name.ends_with(".mlp.linear_fc1.weight");
    if (is_input && tensor.shape.size() == 2 && tower_of(name) == tower) return tensor.shape[1];
  }
  return std::nullopt;
}

std::int64_t patch_cuts(const TensorDesc& tensor, std::span<const TensorDesc> tensors) {
  const bool is_patch = tensor.name.ends_with(".patch_embed.proj.weight") ||
                        tensor.name.ends_with(".patch_embed.proj.bias");
  const std::string_view tower = tower_of(tensor.name);
  if (!is_patch || tensor.shape.empty() || tower.empty()) return 1;
  const std::optional<std::int64_t> width = tower_width(tensors, tower);
  if (!width) return 1;
  const std::int64_t rows = tensor.shape[0];
  return rows > 0 && rows < *width && *width % rows == 0 ? *width / rows : 1;
}

}  // namespace shardwright

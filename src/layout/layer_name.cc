// SPDX-License-Identifier: Apache-2.0
#include "layout/layer_name.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>

namespace shardwright {

std::optional<LayerName> split_layer_name(std::string_view name) {
  constexpr std::string_view kMark = "layers.";
  std::size_t at = name.find(kMark);
  while (at != std::string_view::npos && at != 0 && name[at - 1] != '.') {
    at = name.find(kMark, at + 1);
  }
  if (at == std::string_view::npos) return std::nullopt;
  LayerName parts{name.substr(0, at + kMark.size() - 1), std::nullopt,
                  name.substr(at + kMark.size())};
  const std::size_t dot = parts.rest.find('.');
  const std::string_view first = parts.rest.substr(0, dot);
  std::int64_t index = 0;
  const auto [end, error] = std::from_chars(first.data(), first.data() + first.size(), index);
  if (error == std::errc() && end == first.data() + first.size() && index >= 0 &&
      dot != std::string_view::npos) {
    parts.index = index;
    parts.rest.remove_prefix(dot + 1);
  }
  return parts;
}

bool is_main_stack(std::string_view stack) {
  return stack == "decoder.layers" || stack == "language_model.decoder.layers";
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

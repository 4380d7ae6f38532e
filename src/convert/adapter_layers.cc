// SPDX-License-Identifier: Apache-2.0
#include "convert/adapter_layers.h"

#include <charconv>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <vector>

namespace shardwright {
namespace {

struct LayerModule {
  std::string kind;  // the name, with # in place of the layer
  std::int64_t layer = 0;
};

// The first number between dots is a layer's; those behind it are of experts.
std::optional<LayerModule> module_of_layer(std::string_view name) {
  for (std::size_t dot = name.find('.'); dot != std::string_view::npos;
       dot = name.find('.', dot + 1)) {
    const std::string_view rest = name.substr(dot + 1);
    std::int64_t layer = 0;
    const auto read = std::from_chars(rest.data(), rest.data() + rest.size(), layer);
    const std::size_t length = static_cast<std::size_t>(read.ptr - rest.data());
    if (read.ec != std::errc() || length >= rest.size() || rest[length] != '.') continue;
    return LayerModule{
        std::string(name.substr(0, dot + 1)) + "#" + std::string(rest.substr(length)), layer};
  }
  return std::nullopt;
}

}  // namespace

std::vector<std::int64_t> layers_without(std::span<const std::string> modules,
                                         std::span<const TensorDesc> base,
                                         std::optional<std::int64_t> layers) {
  std::map<std::string, std::set<std::int64_t>, std::less<>> adapted;
  for (const std::string& module : modules) {
    const auto place = module_of_layer(module);
    if (place) adapted[place->kind].insert(place->layer);
  }
  constexpr std::string_view kWeight = ".weight";
  std::set<std::int64_t> left;
  for (const TensorDesc& tensor : base) {
    std::string_view name = tensor.name;
    if (!name.ends_with(kWeight)) continue;
    name.remove_suffix(kWeight.size());
    const auto place = module_of_layer(name);
    if (!place || (layers && place->layer >= *layers)) continue;
    const auto kind = adapted.find(place->kind);
    if (kind != adapted.end() && !kind->second.contains(place->layer)) left.insert(place->layer);
  }
  return {left.begin(), left.end()};
}

}  // namespace shardwright

// SPDX-License-Identifier: Apache-2.0
#include "layout/adapter_gaps.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string_view>

#include "base/text.h"
#include "base/translated.h"
#include "layout/adapter_shards.h"
#include "layout/layer_name.h"

namespace shardwright {
namespace {

using AdaptedModules = std::set<std::string_view>;
using AdaptedLayers = std::map<std::int64_t, AdaptedModules>;

// Those that have all that a layer has adapted, and whatever they have besides.
std::vector<const AdaptedModules*> layers_like(const AdaptedModules& one,
                                               const AdaptedLayers& layers) {
  std::vector<const AdaptedModules*> alike;
  for (const auto& [index, modules] : layers) {
    if (std::ranges::includes(modules, one)) alike.push_back(&modules);
  }
  return alike;
}

// Layers of other kinds have other modules, so those tell nothing; nor does one that the base
// model, where it is there, lacks in that layer.
void add_gaps(std::string_view stack, const AdaptedLayers& layers,
              const std::set<std::string_view>& base,
              std::map<std::string, std::vector<std::string>>& gaps) {
  AdaptedModules all;
  for (const auto& [index, modules] : layers) all.insert(modules.begin(), modules.end());
  for (const auto& [index, modules] : layers) {
    const std::vector<const AdaptedModules*> alike = layers_like(modules, layers);
    for (const std::string_view module : all) {
      if (modules.contains(module)) continue;
      const auto with = std::ranges::count_if(
          alike, [&](const AdaptedModules* other) { return other->contains(module); });
      if (2 * with <= std::ssize(alike)) continue;
      const std::string weight = join_layer_name(stack, index, module) + ".weight";
      if (!base.empty() && !base.contains(weight)) continue;
      gaps[join_layer_name(stack, 0, module)].push_back(std::to_string(index));
    }
  }
}

}  // namespace

std::vector<std::string> adapter_gaps(std::span<const TensorDesc> tensors) {
  std::map<std::string_view, AdaptedLayers> stacks;
  std::set<std::string_view> base;
  for (const TensorDesc& desc : tensors) {
    const auto adapter = adapter_tensor(desc.name);
    if (!adapter && split_layer_name(desc.name)) base.insert(desc.name);
    const auto layer = adapter ? split_layer_name(adapter->module) : std::nullopt;
    if (layer && layer->index) stacks[layer->stack][*layer->index].insert(layer->rest);
  }
  std::map<std::string, std::vector<std::string>> gaps;  // layers, by the module of the first
  for (const auto& [stack, layers] : stacks) add_gaps(stack, layers, base, gaps);
  std::vector<std::string> texts;
  for (const auto& [name, layers] : gaps) {
    const std::string module(split_layer_name(name)->rest);
    texts.push_back(translated("{} of layers {}", module, name_list(layers)));
  }
  return texts;
}

}  // namespace shardwright

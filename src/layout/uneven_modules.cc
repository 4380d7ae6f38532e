// SPDX-License-Identifier: Apache-2.0
#include "layout/uneven_modules.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "base/text.h"
#include "base/translated.h"
#include "layout/adapter_shards.h"
#include "layout/layer_name.h"
#include "layout/state_name.h"

namespace shardwright {
namespace {

constexpr std::size_t kMostNamesLacking = 2;

// What a module of a layer has, and which layers have the same.
using NamesInModule = std::set<std::string_view>;
using LayersAlike = std::map<NamesInModule, std::vector<std::int64_t>>;
// By stack and by the module's name, `mlp`.
using ModulesOfLayers = std::map<std::pair<std::string_view, std::string_view>, LayersAlike>;

ModulesOfLayers modules_of_layers(std::span<const TensorDesc> tensors) {
  using Layers = std::map<std::int64_t, NamesInModule>;
  std::map<std::pair<std::string_view, std::string_view>, Layers> found;
  for (const TensorDesc& desc : tensors) {
    if (split_state_name(desc.name) || is_of_adapter(desc.name)) continue;
    const std::optional<LayerName> name = split_layer_name(desc.name);
    const std::size_t dot = name ? name->rest.find('.') : std::string_view::npos;
    if (!name || !name->index || dot == std::string_view::npos) continue;
    found[{name->stack, name->rest.substr(0, dot)}][*name->index].insert(name->rest);
  }
  ModulesOfLayers modules;
  for (const auto& [module, layers] : found) {
    for (const auto& [index, names] : layers) modules[module][names].push_back(index);
  }
  return modules;
}

// What the first has not; nothing where it has something else.
std::vector<std::string_view> names_lacking(const NamesInModule& names,
                                            const NamesInModule& whole) {
  std::vector<std::string_view> less;
  if (names.size() >= whole.size() || !std::ranges::includes(whole, names)) return less;
  std::ranges::set_difference(whole, names, std::back_inserter(less));
  return less;
}

}  // namespace

std::vector<std::string> uneven_modules(std::span<const TensorDesc> tensors) {
  std::vector<std::string> told;
  for (const auto& [module, alike] : modules_of_layers(tensors)) {
    for (const auto& [names, layers] : alike) {
      if (layers.size() > 1) continue;
      for (const auto& [whole, others] : alike) {
        const std::vector<std::string_view> less = names_lacking(names, whole);
        if (less.empty() || less.size() > kMostNamesLacking) continue;
        std::vector<std::string> missing;
        for (const std::string_view name : less) {
          missing.push_back(join_layer_name(module.first, layers.front(), name));
        }
        told.push_back(
            translated("nothing is stored of {}, and layer {} has the like: see that no part of "
                       "the model was lost",
                       name_list(missing), others.front()));
        break;
      }
    }
  }
  return told;
}

}  // namespace shardwright

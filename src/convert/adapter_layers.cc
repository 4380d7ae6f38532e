// SPDX-License-Identifier: Apache-2.0
#include "convert/adapter_layers.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/text.h"
#include "base/translated.h"

namespace shardwright {
namespace {

constexpr std::string_view kWeightEnd = ".weight";

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

using Layers = std::set<std::int64_t>;

// A module of that name without its `.weight`; empty for what is none.
std::string_view module_with_weight(std::string_view tensor) {
  if (!tensor.ends_with(kWeightEnd)) return {};
  return tensor.substr(0, tensor.size() - kWeightEnd.size());
}

Layers layers_without(const std::vector<LoraModule>& modules, std::span<const TensorDesc> base,
                      std::optional<std::int64_t> layers) {
  std::map<std::string, Layers, std::less<>> adapted;
  for (const LoraModule& module : modules) {
    const auto place = module_of_layer(module.name);
    if (place) adapted[place->kind].insert(place->layer);
  }
  Layers left;
  for (const TensorDesc& tensor : base) {
    const auto place = module_of_layer(module_with_weight(tensor.name));
    if (!place || (layers && place->layer >= *layers)) continue;
    const auto kind = adapted.find(place->kind);
    if (kind != adapted.end() && !kind->second.contains(place->layer)) left.insert(place->layer);
  }
  return left;
}

// Whether one without a module has it in the base is not known, so it has to have none. Of several
// stacks of layers nothing tells which has so many.
Layers layers_without_any(const std::vector<LoraModule>& modules, std::int64_t layers) {
  std::set<std::string> stacks;
  Layers adapted;
  for (const LoraModule& module : modules) {
    const auto place = module_of_layer(module.name);
    if (!place) continue;
    stacks.insert(place->kind.substr(0, place->kind.find('#')));
    adapted.insert(place->layer);
  }
  Layers left;
  if (stacks.size() != 1) return left;
  for (std::int64_t layer = 0; layer < layers; ++layer) {
    if (!adapted.contains(layer)) left.insert(layer);
  }
  return left;
}

bool is_called(std::string_view module, std::string_view end) {
  if (!module.ends_with(end)) return false;
  return module.size() == end.size() || module[module.size() - end.size() - 1] == '.';
}

// What its config lists of the base's modules and none of its tensors is of.
std::vector<std::string> targets_without(const PeftAdapter& adapter,
                                         std::span<const TensorDesc> base) {
  std::vector<std::string> left;
  for (const std::string& target : adapter.config.target_modules) {
    const bool is_adapted = std::ranges::any_of(
        adapter.modules, [&](const LoraModule& module) { return is_called(module.name, target); });
    const bool is_there = std::ranges::any_of(base, [&](const TensorDesc& tensor) {
      return tensor.shape.size() == 2 && is_called(module_with_weight(tensor.name), target);
    });
    if (is_there && !is_adapted) left.push_back(target);
  }
  return left;
}

// Modules that its tensors are of and its config leaves out, by a list of ends of names and one of
// layers.
std::vector<std::string> modules_beyond(const PeftAdapter& adapter) {
  const LoraConfig& config = adapter.config;
  const bool lists_modules = !config.target_modules.empty() && config.target_parameters.empty();
  std::vector<std::string> beyond;
  for (const LoraModule& module : adapter.modules) {
    const bool is_listed =
        !lists_modules || std::ranges::any_of(config.target_modules, [&](const std::string& end) {
          return is_called(module.name, end);
        });
    const auto place = module_of_layer(module.name);
    const bool is_chosen = config.chosen_layers.empty() ||
                           (place && std::ranges::find(config.chosen_layers, place->layer) !=
                                         config.chosen_layers.end());
    if (!is_listed || !is_chosen) beyond.push_back(module.name);
  }
  return beyond;
}

}  // namespace

Notes notes_on_gaps(const PeftAdapter& adapter, std::span<const TensorDesc> base,
                    std::optional<std::int64_t> layers) {
  Notes notes;
  Layers left;
  if (!adapter.config.chooses_layers) {
    left = base.empty() ? layers_without_any(adapter.modules, layers.value_or(0))
                        : layers_without(adapter.modules, base, layers);
  }
  if (!left.empty()) {
    std::vector<std::string> numbers;
    for (const std::int64_t layer : left) numbers.push_back(std::to_string(layer));
    notes.push_back(translated(
        "the adapter {} lacks modules in layers {} that it has in others, and its {} names no "
        "layers_to_transform: a part of it may be missing, as where one pipeline stage saved it",
        printable(adapter.path), name_list(numbers), kPeftConfigFile));
  }
  const std::vector<std::string> targets = targets_without(adapter, base);
  if (!targets.empty()) {
    notes.push_back(translated(
        "the adapter {} has nothing of {}, which its {} lists in target_modules and the base model "
        "has: a part of it may be missing",
        printable(adapter.path), name_list(targets), kPeftConfigFile));
  }
  const std::vector<std::string> beyond = modules_beyond(adapter);
  if (!beyond.empty()) {
    notes.push_back(
        translated("the adapter {} changes {}, which its {} leaves out (target_modules, "
                   "layers_to_transform): PEFT would drop these tensors, and here they are used",
                   printable(adapter.path), name_list(beyond), kPeftConfigFile));
  }
  return notes;
}

}  // namespace shardwright

// SPDX-License-Identifier: Apache-2.0
#include "layout/lost_tensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/text.h"
#include "base/translated.h"
#include "layout/adapter_shards.h"
#include "layout/layer_name.h"
#include "layout/lost_siblings.h"

namespace shardwright {
namespace {

constexpr std::string_view kRouterWeight = "mlp.router.weight";
constexpr std::string_view kWordEmbeddings = "embedding.word_embeddings.weight";

// What each layer with the module has, under one name or the other, if a layer has it that has all
// that this one has: layers of a hybrid are of several kinds.
struct Companion {
  std::string_view module;
  std::array<std::string_view, 2> names;
  std::string_view with = {};  // what begins so comes and goes with it
};

constexpr std::array kCompanions = {
    Companion{"self_attention.linear_qkv.weight",
              {"input_layernorm.weight", "self_attention.linear_qkv.layer_norm_weight"},
              "input_layernorm."},
    Companion{"mlp.linear_fc1.weight",
              {"pre_mlp_layernorm.weight", "mlp.linear_fc1.layer_norm_weight"},
              "pre_mlp_layernorm."},
    Companion{kRouterWeight,
              {"pre_mlp_layernorm.weight", "mlp.linear_fc1.layer_norm_weight"},
              "pre_mlp_layernorm."},
    Companion{kRouterWeight,
              {"mlp.shared_experts.linear_fc1.weight", "mlp.shared_experts.linear_fc2.weight"},
              "mlp.shared_experts."},
};

// What the layers of each main stack have, by their numbers.
using Layer = std::set<std::string_view>;
using NumberedLayers = std::map<std::int64_t, Layer>;
using Stacks = std::map<std::string_view, NumberedLayers>;

Stacks stacks_of(std::span<const TensorDesc> tensors) {
  Stacks stacks;
  for (const TensorDesc& desc : tensors) {
    const std::optional<LayerName> name = split_layer_name(desc.name);
    if (!name || !name->index || !is_main_stack(name->stack)) continue;
    if (is_of_adapter(desc.name)) continue;
    stacks[name->stack][*name->index].insert(name->rest);
  }
  return stacks;
}

bool has_any(const Layer& layer, const Companion& companion) {
  return std::ranges::any_of(companion.names,
                             [&](std::string_view name) { return layer.contains(name); });
}

// The names that tell a layer's kind.
Layer kind_without(const Layer& layer, const Companion& companion) {
  Layer kind;
  std::ranges::copy_if(layer, std::inserter(kind, kind.end()), [&](std::string_view name) {
    const bool is_with = !companion.with.empty() && name.starts_with(companion.with);
    return !is_with && std::ranges::find(companion.names, name) == companion.names.end();
  });
  return kind;
}

void add_uneven_layers(std::string_view stack, const NumberedLayers& layers,
                       const Companion& companion, std::vector<LostPart>& lost) {
  std::map<Layer, std::vector<std::int64_t>> kinds;  // of layers with the module
  for (const auto& [index, layer] : layers) {
    if (layer.contains(companion.module)) kinds[kind_without(layer, companion)].push_back(index);
  }
  for (const auto& [kind, alike] : kinds) {
    std::string present;
    std::vector<std::string> missing;
    for (const std::int64_t index : alike) {
      const Layer& layer = layers.at(index);
      if (!has_any(layer, companion)) {
        missing.push_back(join_layer_name(stack, index, companion.names[0]));
      } else if (present.empty()) {
        const bool is_first = layer.contains(companion.names[0]);
        present = join_layer_name(stack, index, companion.names[is_first ? 0 : 1]);
      }
    }
    if (present.empty() || missing.empty()) continue;
    lost.push_back({missing.front(),
                    translated("{} is there, but nothing is stored of {}, which layers of that "
                               "kind have; a part of the model was lost",
                               present, name_list(missing))});
  }
}

bool has_beneath(const Layer& layer, std::string_view module) {
  const auto at = layer.lower_bound(module);
  return at != layer.end() && at->starts_with(module);
}

// Whoever leaves experts out does not miss their router: it is told by their name.
void add_lost_routers(const Stacks& stacks, std::vector<LostPart>& lost) {
  constexpr std::string_view kExperts = "mlp.experts.";
  std::vector<std::string> missing;
  std::string first;
  for (const auto& [stack, layers] : stacks) {
    for (const auto& [index, layer] : layers) {
      if (!has_beneath(layer, kExperts) || has_beneath(layer, "mlp.router.")) continue;
      if (missing.empty()) first = join_layer_name(stack, index, kExperts);
      missing.push_back(join_layer_name(stack, index, kRouterWeight));
    }
  }
  if (missing.empty()) return;
  lost.push_back({first, translated("experts are there, but nothing is stored of {}, which chooses "
                                    "among them; a part of the model was lost",
                                    name_list(missing))});
}

bool has_norms_in_front(const Stacks& stacks) {
  return std::ranges::any_of(stacks, [](const auto& stack) {
    return std::ranges::any_of(stack.second, [](const auto& layer) {
      return std::ranges::any_of(kCompanions, [&](const Companion& companion) {
        return companion.names[0].ends_with("layernorm.weight") && has_any(layer.second, companion);
      });
    });
  });
}

// Layers lie between an embedding and a norm. Models of images have other ends, and those
// whose layers end with their norms have none behind them.
void add_lost_ends(std::span<const TensorDesc> tensors, const Stacks& stacks,
                   std::vector<LostPart>& lost) {
  if (stacks.empty()) return;
  std::string embedding;
  std::string norm;
  for (const TensorDesc& desc : tensors) {
    const std::string_view name = desc.name;
    if (name.ends_with(kWordEmbeddings)) embedding = name;
    const bool is_norm = name.find("coder.final_layernorm.") != std::string_view::npos ||
                         name.find("coder.final_norm.") != std::string_view::npos;
    if (is_norm && is_behind_layers(name) && name.ends_with(".weight")) norm = name;
  }
  if (embedding.empty() == norm.empty()) return;
  if (embedding.empty()) {
    lost.push_back({std::string(kWordEmbeddings),
                    translated("{} and layers are there, but no {}; a part of the model was lost",
                               norm, kWordEmbeddings)});
  } else if (has_norms_in_front(stacks)) {
    const std::string_view name = "decoder.final_layernorm.weight";
    lost.push_back({std::string(name),
                    translated("{} and layers are there, but no {}; a part of the model was lost",
                               embedding, name)});
  }
}

// Towers have layers of their own, which no family's rules may tell.
void add_lost_of_towers(std::span<const TensorDesc> tensors, std::vector<LostPart>& lost) {
  std::vector<const TensorDesc*> towers;
  for (const TensorDesc& desc : tensors) {
    const std::optional<LayerName> name = split_layer_name(desc.name);
    if ((name && is_main_stack(name->stack)) || is_prediction_layer(desc.name)) continue;
    if (!is_of_adapter(desc.name)) towers.push_back(&desc);
  }
  const std::set<std::string> lost_names = lost_siblings(towers);
  if (lost_names.empty()) return;
  const std::vector<std::string> names(lost_names.begin(), lost_names.end());
  lost.push_back({names.front(), translated("nothing is stored of {}, which layers of that kind "
                                            "have; a part of the model was lost",
                                            name_list(names))});
}

}  // namespace

std::vector<LostPart> lost_tensors(std::span<const TensorDesc> tensors) {
  const Stacks stacks = stacks_of(tensors);
  std::vector<LostPart> lost;
  add_lost_ends(tensors, stacks, lost);
  add_lost_routers(stacks, lost);
  add_lost_of_towers(tensors, lost);
  for (const auto& [stack, layers] : stacks) {
    for (const Companion& companion : kCompanions) {
      add_uneven_layers(stack, layers, companion, lost);
    }
  }
  return lost;
}

}  // namespace shardwright

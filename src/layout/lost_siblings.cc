// SPDX-License-Identifier: Apache-2.0
#include "layout/lost_siblings.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "layout/numbered_name.h"

namespace shardwright {
namespace {

// What follows a layer's number.
using Rests = std::set<std::string_view>;
using Siblings = std::map<std::int64_t, Rests>;
// Layers that have just these.
using KindOfSibling = std::pair<Rests, std::vector<std::int64_t>>;

std::string_view module_before(std::string_view rest) {
  const std::size_t dot = rest.rfind('.');
  return dot == std::string_view::npos ? std::string_view() : rest.substr(0, dot);
}

// The first layer may have tables of positions for all.
bool may_be_shared(std::string_view module) {
  return module.contains("bias") || module.contains("embed") || module.contains("pos");
}

// What the layers of one kind have lost if they are of the other one; else nothing.
std::vector<std::string_view> lost_of(const KindOfSibling& whole, const KindOfSibling& part) {
  const std::size_t with = whole.second.size();
  const std::size_t without = part.second.size();
  if (part.first.size() >= whole.first.size() || without > with) return {};
  if (!std::ranges::includes(whole.first, part.first)) return {};
  std::vector<std::string_view> gone;
  std::ranges::set_difference(whole.first, part.first, std::back_inserter(gone));
  const std::string_view module = module_before(gone.front());
  const bool is_one_module = std::ranges::all_of(
      gone, [&](std::string_view rest) { return module_before(rest) == module; });
  if (!is_one_module) return {};
  // As many with as without are two kinds of layers, unless they are two layers.
  if (without == with && (with > 1 || may_be_shared(module))) return {};
  return gone;
}

std::vector<KindOfSibling> kinds_of(const Siblings& layers) {
  std::map<Rests, std::vector<std::int64_t>> kinds;
  for (const auto& [index, rests] : layers) kinds[rests].push_back(index);
  return {kinds.begin(), kinds.end()};
}

}  // namespace

std::set<std::string> lost_siblings(std::span<const TensorDesc* const> tensors) {
  std::map<std::string_view, Siblings> stacks;
  for (const TensorDesc* tensor : tensors) {
    for (const LayerName& name : split_at_numbers(tensor->name)) {
      stacks[name.stack][*name.index].insert(name.rest);
    }
  }
  std::set<std::string> lost;
  for (const auto& [stack, layers] : stacks) {
    const std::vector<KindOfSibling> kinds = kinds_of(layers);
    for (const KindOfSibling& whole : kinds) {
      for (const KindOfSibling& part : kinds) {
        for (const std::string_view rest : lost_of(whole, part)) {
          for (const std::int64_t index : part.second) {
            lost.insert(fmt::format("{}.{}.{}", stack, index, rest));
          }
        }
      }
    }
  }
  return lost;
}

std::set<std::string> lost_weights(std::span<const TensorDesc* const> tensors) {
  std::map<std::string_view, std::vector<std::string_view>> modules;
  for (const TensorDesc* tensor : tensors) {
    modules[module_before(tensor->name)].push_back(tensor->name);
  }
  std::set<std::string> lost;
  for (const auto& [module, names] : modules) {
    if (module.empty() || names.size() > 1 || !names[0].ends_with(".bias")) continue;
    lost.insert(fmt::format("{}.weight", module));
  }
  return lost;
}

}  // namespace shardwright

// SPDX-License-Identifier: Apache-2.0
#include "layout/lost_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string_view>

#include "base/checked.h"
#include "base/text.h"
#include "base/translated.h"
#include "layout/adapter_shards.h"
#include "layout/layer_name.h"

namespace shardwright {
namespace {

enum class Counted : std::uint8_t { kModel, kAdapters };

bool is_of_adapter(std::string_view name) { return adapter_tensor(name) || name_of_saved(name); }

std::set<std::int64_t> named_layers(std::span<const TensorDesc> tensors, Counted counted) {
  std::set<std::int64_t> layers;
  for (const TensorDesc& desc : tensors) {
    if (is_of_adapter(desc.name) != (counted == Counted::kAdapters)) continue;
    const std::optional<LayerName> name = split_layer_name(desc.name);
    if (name && name->index && is_main_stack(name->stack)) layers.insert(*name->index);
  }
  return layers;
}

// Those up to the last, which is named or expected, that nothing is of.
std::vector<std::string> missing_among(const std::set<std::int64_t>& layers, std::int64_t last) {
  // Arguments and names may claim any number: a few of the missing ones say it.
  constexpr std::size_t kMostNamed = 20;
  std::vector<std::string> missing;
  for (std::int64_t layer = 0; layer < last && missing.size() < kMostNamed; ++layer) {
    if (!layers.contains(layer)) missing.push_back(std::to_string(layer));
  }
  if (!layers.contains(last) && missing.size() < kMostNamed) {
    missing.push_back(std::to_string(last));
  }
  return missing;
}

// A run may train adapters of some layers only.
void add_lost_layers(std::span<const TensorDesc> tensors, std::int64_t expected,
                     std::vector<LostPart>& lost) {
  const std::set<std::int64_t> layers = named_layers(tensors, Counted::kModel);
  if (layers.empty()) return;
  const std::int64_t last = std::max(expected - 1, *layers.rbegin());
  const std::vector<std::string> missing = missing_among(layers, last);
  if (missing.empty()) return;
  lost.push_back({"decoder.layers",
                  translated("decoder.layers: found {} layers, none of {}, expected all up to "
                             "{}; a pipeline stage's part was lost",
                             layers.size(), name_list(missing), last)});
}

void compare_experts(const std::string& name, std::int64_t found, std::int64_t expected,
                     std::vector<LostPart>& lost) {
  if (found == expected) return;
  lost.push_back({name, translated("tensor {}: found {} experts, expected {} as the router has; "
                                   "the shards of expert-parallel ranks were lost",
                                   name, found, expected)});
}

// A router has a row per expert; the experts are one tensor with an axis for them, or one each.
void add_lost_experts(std::span<const TensorDesc> tensors, std::vector<LostPart>& lost) {
  std::map<std::string, std::int64_t, std::less<>> routers;  // rows by what is before `.router.`
  for (const TensorDesc& desc : tensors) {
    const std::size_t at = desc.name.find(".router.weight");
    if (at != std::string::npos && desc.shape.size() == 2) {
      routers.emplace(desc.name.substr(0, at), desc.shape[0]);
    }
  }
  std::map<std::string, std::set<std::string>> numbered;
  for (const TensorDesc& desc : tensors) {
    const std::size_t at = desc.name.find(".experts.");
    if (at == std::string::npos) continue;
    const auto router = routers.find(std::string_view(desc.name).substr(0, at));
    if (router == routers.end()) continue;
    const bool is_grouped = desc.name.find(".experts.experts.") != std::string::npos &&
                            desc.name.ends_with(".weight") && desc.shape.size() == 3;
    if (is_grouped) compare_experts(desc.name, desc.shape[0], router->second, lost);
    const std::size_t digits = desc.name.find_last_not_of("0123456789") + 1;
    if (digits < desc.name.size()) {
      numbered[desc.name.substr(0, digits)].insert(desc.name.substr(digits));
    }
  }
  for (const auto& [name, numbers] : numbered) {
    const std::size_t at = name.find(".experts.");
    const auto router = routers.find(std::string_view(name).substr(0, at));
    compare_experts(name + "*", static_cast<std::int64_t>(numbers.size()), router->second, lost);
  }
}

}  // namespace

std::int64_t count_named_layers(std::span<const TensorDesc> tensors) {
  return static_cast<std::int64_t>(named_layers(tensors, Counted::kModel).size());
}

std::vector<std::string> layers_without_adapters(std::span<const TensorDesc> tensors,
                                                 std::int64_t layers) {
  const std::set<std::int64_t> adapted = named_layers(tensors, Counted::kAdapters);
  if (adapted.empty()) return {};
  return missing_among(adapted, std::max(layers - 1, *adapted.rbegin()));
}

std::vector<LostPart> lost_parts(std::span<const TensorDesc> tensors, std::int64_t layers) {
  std::vector<LostPart> lost;
  add_lost_layers(tensors, layers, lost);
  add_lost_experts(tensors, lost);
  return lost;
}

std::vector<LostPart> lost_local_experts(std::span<const TensorDesc> tensors) {
  std::map<std::string, std::pair<std::int64_t, std::int64_t>> down;  // experts per rank, rows
  for (const TensorDesc& desc : tensors) {
    const std::size_t at = desc.name.find(".experts.fc2.weight");
    if (at == std::string::npos || desc.shape.size() != 2) continue;
    auto& [count, rows] = down[desc.name.substr(0, at)];
    ++count;
    rows = desc.shape[0];
  }
  std::vector<LostPart> lost;
  for (const TensorDesc& desc : tensors) {
    const std::size_t at = desc.name.find(".router.weight");
    const auto found = at == std::string::npos ? down.end() : down.find(desc.name.substr(0, at));
    if (found == down.end() || desc.shape.size() != 2 || desc.shape[1] == 0) continue;
    const auto [count, rows] = found->second;
    // A product beyond all numbers is no router's count.
    compare_experts(found->first + ".experts.fc2.weight*",
                    checked_mul(rows / desc.shape[1], count).value_or(-1), desc.shape[0], lost);
  }
  return lost;
}

}  // namespace shardwright

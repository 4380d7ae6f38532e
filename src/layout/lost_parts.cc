// SPDX-License-Identifier: Apache-2.0
#include "layout/lost_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string_view>

#include "base/checked.h"
#include "base/text.h"
#include "base/translated.h"
#include "layout/adapter_shards.h"
#include "layout/expert_names.h"
#include "layout/layer_name.h"
#include "layout/lost_tensors.h"

namespace shardwright {
namespace {

enum class Counted : std::uint8_t { kModel, kAdapters };

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
    const bool is_grouped =
        is_of_routed_experts(desc.name) && desc.name.ends_with(".weight") && desc.shape.size() == 3;
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

// The name of what a Megatron module never lacks beside the tensor of that name; empty where that
// depends on the model.
std::string counterpart_of(const std::string& name) {
  constexpr std::array<std::array<std::string_view, 2>, 4> kPairs = {{
      {".linear_fc1.weight", ".linear_fc2.weight"},
      {".linear_fc2.weight", ".linear_fc1.weight"},
      {".experts.weight1", ".experts.weight2"},
      {".experts.weight2", ".experts.weight1"},
  }};
  for (const auto& [present, needed] : kPairs) {
    const std::size_t at = name.find(present);
    if (at == std::string::npos) continue;
    const std::string_view rest = std::string_view(name).substr(at + present.size());
    // Grouped experts are numbered: `linear_fc1.weight12`.
    if (rest.find_first_not_of("0123456789") != std::string_view::npos) continue;
    return fmt::format("{}{}{}", name.substr(0, at), needed, rest);
  }
  return {};
}

struct Counterparts {
  std::string present;               // of the first that is missing
  std::vector<std::string> missing;  // sorted

  void add(const std::string& name, const std::string& other) {
    if (missing.empty()) present = name;
    missing.push_back(other);
  }

  void tell(std::vector<LostPart>& lost) {
    if (missing.empty()) return;
    std::ranges::sort(missing);
    lost.push_back({missing.front(),
                    translated("{} is there, but nothing is stored of {}, which each such module "
                               "has; a part of the model was lost",
                               present, name_list(missing))});
  }
};

// The linear of an attention that never stands alone. Which one is beside it differs between
// models.
std::string_view lone_linear_of(std::string_view name) {
  for (const std::string_view linear : {"linear_qkv.weight", "linear_proj.weight"}) {
    for (const std::string_view module : {".self_attention.", ".cross_attention."}) {
      const bool is_it = name.ends_with(linear);
      if (is_it && name.substr(0, name.size() - linear.size()).ends_with(module)) return linear;
    }
  }
  return {};
}

std::string_view module_of(std::string_view name, std::string_view tensor) {
  return name.substr(0, name.size() - tensor.size());
}

// Modules that lack a tensor without which they compute nothing, whatever the model's family.
void add_lost_counterparts(std::span<const TensorDesc> tensors, std::vector<LostPart>& lost) {
  constexpr std::string_view kRouter = "router.weight";
  std::set<std::string_view> names;
  for (const TensorDesc& desc : tensors) {
    if (!is_of_adapter(desc.name)) names.insert(desc.name);
  }
  const auto has_any = [&](const std::string& prefix, std::string_view but) {
    for (auto at = names.lower_bound(prefix); at != names.end() && at->starts_with(prefix); ++at) {
      if (at->ends_with(".weight") && *at != but) return true;
    }
    return false;
  };
  Counterparts dense;
  Counterparts experts;
  for (const std::string_view view : names) {
    const std::string name(view);
    std::string other = counterpart_of(name);
    if (!other.empty() && !names.contains(other)) {
      (name.contains(".experts.") ? experts : dense).add(name, other);
    } else if (const std::string_view linear = lone_linear_of(name); !linear.empty()) {
      const std::string module(module_of(name, linear));
      const bool reads = linear == "linear_qkv.weight";
      if (!has_any(module + "linear_", name)) {
        dense.add(name, module + (reads ? "linear_proj.weight" : "linear_q*"));
      }
    } else if (name.ends_with(".mlp.router.weight")) {
      other = fmt::format("{}experts.", module_of(name, kRouter));
      const auto at = names.lower_bound(other);
      if (at == names.end() || !at->starts_with(other)) experts.add(name, other + "*");
    }
  }
  dense.tell(lost);
  experts.tell(lost);
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
  add_lost_counterparts(tensors, lost);
  std::ranges::move(lost_tensors(tensors), std::back_inserter(lost));
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

// SPDX-License-Identifier: Apache-2.0
#include "convert/renames.h"

#include <cstdint>
#include <unordered_map>
#include <unordered_set>
#include <utility>

namespace shardwright {

std::vector<RenamedTensor> renames_of(std::span<const DraftTensor> drafts, const Plan& plan,
                                      const Catalog& source,
                                      std::span<const std::string> stored_names) {
  const auto name_of = [&](std::uint32_t tensor) -> const std::string& {
    return stored_names.empty() ? source.tensors[tensor].desc.name : stored_names[tensor];
  };
  std::unordered_map<std::uint32_t, const QuantisedSource*> by_values;
  for (const QuantisedSource& parts : plan.quantised) by_values.emplace(parts.values, &parts);
  std::unordered_set<std::uint32_t> repeat_names;  // of other terms
  for (const WeightedSource& weighted : plan.weighted) {
    if (weighted.term > 0) repeat_names.insert(weighted.values);
  }
  std::vector<RenamedTensor> renames;
  for (const DraftTensor& draft : drafts) {
    RenamedTensor rename{{}, draft.desc.name};
    std::unordered_set<std::uint32_t> seen;
    for (const TensorView& view : draft.recipe.views) {
      if (repeat_names.contains(view.source) || !seen.insert(view.source).second) continue;
      rename.source.push_back(name_of(view.source));
      const auto found = by_values.find(view.source);
      if (found == by_values.end()) continue;
      for (const std::uint32_t companion : companions_of(*found->second)) {
        rename.source.push_back(name_of(companion));
      }
    }
    renames.push_back(std::move(rename));
  }
  return renames;
}

}  // namespace shardwright

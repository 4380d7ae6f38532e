// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <vector>

#include "layout/component.h"

// For tests: the groups that Megatron-Core would make of a component's ranks.

namespace shardwright {

using RankAxis = std::int64_t RankPlace::*;
using RankGroups = std::vector<std::vector<std::int64_t>>;

/// The ranks of the run that differ along an axis only, by their first rank.
[[nodiscard]] inline RankGroups rank_groups(const Component& component, RankAxis axis) {
  constexpr std::array<RankAxis, 4> kDense = {&RankPlace::tensor, &RankPlace::context,
                                              &RankPlace::data, &RankPlace::pipeline};
  constexpr std::array<RankAxis, 4> kExperts = {&RankPlace::expert_tensor, &RankPlace::expert,
                                                &RankPlace::expert_data, &RankPlace::pipeline};
  const auto& axes = std::ranges::find(kDense, axis) != kDense.end() ? kDense : kExperts;
  std::map<std::array<std::int64_t, 4>, std::size_t> known;
  RankGroups groups;
  for (std::int64_t rank = 0; rank < component.ranks(); ++rank) {
    const RankPlace place = place_of_rank(component, rank);
    std::array<std::int64_t, 4> others{};
    for (std::size_t i = 0; i < axes.size(); ++i) {
      if (axes[i] != axis) others[i] = place.*axes[i];
    }
    const auto [group, is_new] = known.emplace(others, groups.size());
    if (is_new) groups.emplace_back();
    groups[group->second].push_back(component.rank_offset + rank);
  }
  return groups;
}

}  // namespace shardwright

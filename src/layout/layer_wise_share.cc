// SPDX-License-Identifier: Apache-2.0
#include "layout/layer_wise_share.h"

#include <algorithm>

namespace shardwright {
namespace {

// 0, 1, 2, 2, 1, 0, 0, 1, ...
std::size_t dealt_to(std::size_t turn, std::size_t ranks) {
  const std::size_t place = turn % (2 * ranks);
  return place < ranks ? place : 2 * ranks - 1 - place;
}

}  // namespace

std::vector<std::vector<std::size_t>> layer_wise_share(std::span<const LayerWiseGroup> groups,
                                                       std::span<const std::int64_t> elements,
                                                       const LayerWiseRank& rank) {
  struct Member {
    std::size_t group;
    std::size_t parameter;
  };
  std::vector<Member> members;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    for (const std::size_t parameter : groups[g].parameters) members.push_back({g, parameter});
  }
  if (rank.ranks > 1) {  // one alone keeps its groups as they are
    std::ranges::stable_sort(members, {},
                             [&](const Member& member) { return elements[member.parameter]; });
  }
  std::vector<std::vector<std::size_t>> share(groups.size());
  std::size_t turn = 0;
  std::size_t expert_turn = 0;
  for (const auto& [group, parameter] : members) {
    const bool is_own = groups[group].is_expert
                            ? dealt_to(expert_turn++, rank.expert_ranks) == rank.expert_number
                            : dealt_to(turn++, rank.ranks) == rank.number;
    if (is_own) share[group].push_back(parameter);
  }
  return share;
}

}  // namespace shardwright

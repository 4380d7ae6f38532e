// SPDX-License-Identifier: Apache-2.0
#include "layout/load_groups.h"

#include <utility>

namespace shardwright {

LoadGroups::LoadGroups(const JobLayout& job) {
  places_.reserve(static_cast<std::size_t>(job.world_size()));
  for (std::int64_t group = 0; group < job.groups(); ++group) {
    std::vector<std::int64_t> ranks;
    for (std::int64_t member = 0; member < job.group_size(); ++member) {
      ranks.push_back(job.rank_of(group, member));
    }
    add(std::move(ranks), job.tensor_rank_of(group));
  }
}

LoadGroups::LoadGroups(std::vector<std::int64_t> ranks, std::int64_t tensor_rank) {
  add(std::move(ranks), tensor_rank);
}

std::optional<LoadGroups::Place> LoadGroups::place_of(std::int64_t rank) const {
  const auto found = places_.find(rank);
  if (found == places_.end()) return std::nullopt;
  return found->second;
}

void LoadGroups::add(std::vector<std::int64_t> ranks, std::int64_t tensor_rank) {
  const auto group = static_cast<std::uint32_t>(groups_.size());
  for (std::uint32_t member = 0; member < ranks.size(); ++member) {
    places_.emplace(ranks[member], Place{group, member});
  }
  groups_.push_back({std::move(ranks), tensor_rank});
}

}  // namespace shardwright

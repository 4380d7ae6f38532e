// SPDX-License-Identifier: Apache-2.0
#include "layout/component.h"

#include <fmt/format.h>

#include <array>

namespace shardwright {
namespace {

using Axes = std::array<std::int64_t, 4>;

// Where in a grid of these sizes, the fastest first, a rank is.
Axes place_in(const Axes& sizes, std::int64_t rank) {
  Axes place{};
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    place[i] = rank % sizes[i];
    rank /= sizes[i];
  }
  return place;
}

}  // namespace

RankPlace place_of_rank(const Component& component, std::int64_t rank) {
  const Component& c = component;
  const std::int64_t expert_data = c.tensor * c.context * c.data / (c.expert_tensor * c.expert);
  const Axes dense = place_in({c.tensor, c.context, c.data, c.pipeline}, rank);
  const Axes experts = place_in({c.expert_tensor, c.expert, expert_data, c.pipeline}, rank);
  return {dense[0], dense[1], dense[2], dense[3], experts[0], experts[1], experts[2]};
}

std::string ranks_text(const Component& component) {
  const std::int64_t last = component.rank_offset + component.ranks() - 1;
  if (last == component.rank_offset) return fmt::format("rank {}", last);
  return fmt::format("ranks {}-{}", component.rank_offset, last);
}

}  // namespace shardwright

// SPDX-License-Identifier: Apache-2.0
#include "layout/component.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace shardwright {
namespace {

// The axes of a grid of ranks, the fastest first, and which of them a group runs along.
struct Grid {
  std::array<std::int64_t, 4> sizes;
  std::size_t along;
};

Grid grid_of(const Component& c, GroupAxis axis) {
  const std::int64_t expert_data = c.tensor * c.context * c.data / (c.expert_tensor * c.expert);
  const std::array dense = {c.tensor, c.context, c.data, c.pipeline};
  const std::array experts = {c.expert_tensor, c.expert, expert_data, c.pipeline};
  switch (axis) {
    case GroupAxis::kTensor:
      return {dense, 0};
    case GroupAxis::kContext:
      return {dense, 1};
    case GroupAxis::kData:
      return {dense, 2};
    case GroupAxis::kPipeline:
      return {dense, 3};
    case GroupAxis::kExpertTensor:
      return {experts, 0};
    case GroupAxis::kExpert:
      return {experts, 1};
    case GroupAxis::kExpertData:
      return {experts, 2};
  }
  return {dense, 0};
}

}  // namespace

RankPlace place_of_rank(const Component& component, std::int64_t rank) {
  const auto coordinate = [&](GroupAxis axis) {
    const Grid grid = grid_of(component, axis);
    std::int64_t rest = rank;
    for (std::size_t i = 0; i < grid.along; ++i) rest /= grid.sizes[i];
    return rest % grid.sizes[grid.along];
  };
  return {coordinate(GroupAxis::kTensor),       coordinate(GroupAxis::kContext),
          coordinate(GroupAxis::kData),         coordinate(GroupAxis::kPipeline),
          coordinate(GroupAxis::kExpertTensor), coordinate(GroupAxis::kExpert),
          coordinate(GroupAxis::kExpertData)};
}

std::vector<std::vector<std::int64_t>> rank_groups(const Component& component, GroupAxis axis) {
  const Grid grid = grid_of(component, axis);
  std::int64_t stride = 1;
  for (std::size_t i = 0; i < grid.along; ++i) stride *= grid.sizes[i];
  const std::int64_t size = grid.sizes[grid.along];
  std::vector<std::vector<std::int64_t>> groups;
  for (std::int64_t rank = 0; rank < component.ranks(); ++rank) {
    if (rank / stride % size != 0) continue;  // not the first of its group
    auto& group = groups.emplace_back();
    for (std::int64_t i = 0; i < size; ++i) {
      group.push_back(component.rank_offset + rank + i * stride);
    }
  }
  return groups;
}

std::string ranks_text(const Component& component) {
  const std::int64_t last = component.rank_offset + component.ranks() - 1;
  if (last == component.rank_offset) return fmt::format("rank {}", last);
  return fmt::format("ranks {}-{}", component.rank_offset, last);
}

}  // namespace shardwright

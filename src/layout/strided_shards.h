// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "layout/dtensor_placement.h"

namespace shardwright {

/// A chunk along the axis that several mesh axes shard: the rows that the metadata claims, and how
/// many the stored item has.
struct ShardClaim {
  std::int64_t offset = 0;
  std::int64_t rows = 0;
  std::int64_t stored_rows = 0;
};

/// Where the rows of the items really lie in a tensor of `extent` rows. FSDP2 over tensor
/// parallelism cuts it for TP first and each part for FSDP; torch 2.12 and 2.13 compute the chunks
/// of the metadata by another rule, which differs where the cuts are uneven. Tries all meshes for
/// which that rule gives just these claims. nullopt where none explains them, where several do
/// and disagree, or where rows were lost because torch took two ranks for replicas.
[[nodiscard]] std::optional<std::vector<ShardRows>> true_shard_rows(
    std::int64_t extent, std::span<const ShardClaim> claims);

}  // namespace shardwright

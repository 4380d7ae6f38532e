// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "shardwright/tensor.h"

namespace shardwright {

/// A shard that some ranks of a data-parallel group hold alike, and that one of them reads (or
/// writes) for all.
struct SharedShard {
  std::string_view key;  ///< with `offset` it identifies the shard
  Dims offset;
  std::uint64_t bytes = 0;
  /// Ranks within the group, at least one; one that is listed twice counts twice, as Megatron
  /// does.
  std::span<const std::uint32_t> holders;
  /// The group has no main replica of it: another group saves it too.
  bool cross_group = false;
  /// The rank of the group whose file has it; nullopt for none.
  std::optional<std::uint32_t> source = std::nullopt;
};

/// Who reads which shard of a group, and how many bytes each rank reads.
struct Distribution {
  std::vector<std::uint32_t> reader;  ///< by shard
  std::vector<std::uint64_t> load;    ///< by rank of the group
};

/// Megatron-Core's rule for fully parallel saves and loads, to the last tie: each shard, rarest
/// and largest first, goes to the holder that has the fewest bytes. Every rank that knows the same
/// shards, in whatever order, comes to the same distribution. REQUIRES: holders are below `ranks`.
[[nodiscard]] Distribution distribute_shards(std::span<const SharedShard> shards,
                                             std::size_t ranks);

/// The rule of Megatron-LM PR 3392: all shards with one source go to that rank together, or where
/// it does not hold all of them, to the least loaded that does; the rest as distribute_shards has
/// it. REQUIRES: as there.
[[nodiscard]] Distribution distribute_by_source(std::span<const SharedShard> shards,
                                                std::size_t ranks);

}  // namespace shardwright

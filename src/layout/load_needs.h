// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "layout/load_groups.h"
#include "shardwright/catalog.h"

namespace shardwright {

/// Stored chunks that hold one region of a tensor alike, and what a shard takes of it.
struct NeededChunk {
  std::uint32_t first = 0;   ///< of its copies in GroupNeeds::copies
  std::uint32_t copies = 1;  ///< in the order in which the catalog has them
  std::uint64_t bytes = 0;   ///< that lie in the shard
};

/// A piece of a tensor that some members of a group hold.
struct NeededShard {
  std::uint32_t tensor = 0;   ///< index into LoadNeeds::tensors
  std::uint32_t piece = 0;    ///< of its JobShards
  std::uint32_t holders = 0;  ///< index into GroupNeeds::holders
  std::uint32_t first = 0;    ///< of the chunks that meet it, in GroupNeeds::chunks
  std::uint32_t chunks = 0;
  bool is_tied = false;       ///< the last stage's copy of the embedding
  bool is_elsewhere = false;  ///< its first holder is in another group
};

/// What the members of one data-parallel group need.
struct GroupNeeds {
  std::vector<NeededShard> shards;
  std::vector<NeededChunk> chunks;
  std::vector<std::uint32_t> copies;  ///< indices into the tensor's ChunkList
  std::vector<std::vector<std::uint32_t>> holders;
};

/// A tensor that is to be loaded.
struct NeededTensor {
  const StoredTensor* stored = nullptr;
  JobShards shards;
  /// Whose files hold it, ascending, for each of the stored tensor's copies (at least one).
  std::vector<std::vector<std::int64_t>> writers;
};

/// What a job has to read of a checkpoint, group by group. Borrows the catalog.
struct LoadNeeds {
  const Catalog* catalog = nullptr;
  LoadGroups ranks;
  std::vector<std::optional<std::int64_t>> owners;  ///< by file: the rank in torch's name for it
  std::vector<NeededTensor> tensors;
  std::vector<GroupNeeds> groups;

  [[nodiscard]] Chunk chunk(std::uint32_t tensor, std::uint32_t index) const {
    return tensors[tensor].stored->chunks[index];
  }
};

/// Finds the stored chunks that each rank of the job needs of the tensors `which` (indices into the
/// catalog's). Pure. Errors: as JobLayout::place.
[[nodiscard]] Result<LoadNeeds> needs_of(const Catalog& catalog,
                                         std::span<const std::uint32_t> which,
                                         const JobLayout& layout);

/// What one member of a group asks for.
struct AskedBox {
  std::uint32_t tensor = 0;  ///< index into the catalog's
  Box box;
};

/// The same for one group, each member of which says what it asks for (`asked`, by member). Every
/// rank that knows the same comes to the same. Errors: kOutOfBounds for a box that is not in its
/// tensor; kHole, kOverlap where not all of it is stored.
[[nodiscard]] Result<LoadNeeds> needs_of_members(const Catalog& catalog, LoadGroups group,
                                                 std::span<const std::vector<AskedBox>> asked);

}  // namespace shardwright

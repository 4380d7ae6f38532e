// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "layout/load_needs.h"
#include "layout/load_plan.h"

namespace shardwright {

/// That a member of a group reads a chunk and sends some of it to others.
struct GroupRead {
  std::uint32_t member = 0;
  std::uint32_t tensor = 0;
  std::uint32_t chunk = 0;
  std::uint64_t sent_bytes = 0;
};

/// One group's part of a plan.
struct GroupPlan {
  std::vector<GroupRead> reads;
  std::vector<RankLoad> members;
  /// The group's files hold all that the group would save, and each member reads all of it that its
  /// own files hold: so it is where the job has the layout that saved the checkpoint.
  bool keeps_own = false;
};

/// Which of several copies the members of a group read when nobody chooses: that of their own
/// tensor rank, else the one that is no rank's own, else the first.
[[nodiscard]] std::uint32_t usual_copy(const LoadNeeds& needs, std::uint32_t group,
                                       const NeededShard& shard, const NeededChunk& chunk);

/// Counts what each member has to do.
[[nodiscard]] std::vector<RankLoad> loads_of(const LoadNeeds& needs, std::uint32_t group,
                                             const std::vector<GroupRead>& reads);

/// By distribute_shards.
[[nodiscard]] GroupPlan plan_stock(const LoadNeeds& needs, std::uint32_t group);
/// By distribute_by_source.
[[nodiscard]] GroupPlan plan_per_name(const LoadNeeds& needs, std::uint32_t group);
/// Chunk by chunk; `stock` says how heavy a member may become, and is taken where it is better.
[[nodiscard]] GroupPlan plan_per_chunk(const LoadNeeds& needs, std::uint32_t group,
                                       const GroupPlan& stock);
/// To the member in whose own file it lies, however much that is; the rest of a file to one member.
[[nodiscard]] GroupPlan plan_by_owner(const LoadNeeds& needs, std::uint32_t group);

}  // namespace shardwright

// SPDX-License-Identifier: Apache-2.0
#include "layout/chunk_order.h"

#include <algorithm>

namespace shardwright {
namespace {

constexpr std::size_t kHalves = 2;  // chunks of a stage that the layers pass through there and back

bool ends_model(const ShardContents& chunk) {
  return chunk.has_final_norm || chunk.head_rows.has_value();
}

}  // namespace

ChunkOrder chunk_order(const RecordedRun& run, std::int64_t stages,
                       std::span<const StageChunks> ranks) {
  const bool has_halves = std::ranges::all_of(
      ranks, [](const StageChunks& rank) { return rank.chunks.size() == kHalves; });
  if (stages < 2 || ranks.empty() || !has_halves) return ChunkOrder::kInterleaved;
  const auto any = [&](std::int64_t stage, auto holds) {
    return std::ranges::any_of(
        ranks, [&](const StageChunks& rank) { return rank.stage == stage && holds(rank.chunks); });
  };
  // Both ends on one stage; files in each other's folders show only one of them there.
  const bool is_folded = any(0, [](const auto& chunks) {
    return chunks.front().has_embedding && ends_model(chunks.back());
  });
  const bool ends_twice =
      any(stages - 1, [](const auto& chunks) { return ends_model(chunks.front()); });
  if (is_folded) return ends_twice ? ChunkOrder::kTwoCopies : ChunkOrder::kFolded;
  const bool ends_last =
      any(stages - 1, [](const auto& chunks) { return ends_model(chunks.back()); });
  return ends_last ? ChunkOrder::kInterleaved : run.chunk_order;
}

}  // namespace shardwright

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "layout/load_needs.h"

namespace shardwright {

/// How the members of a data-parallel group share out what all of them need.
enum class LoadRule : std::uint8_t {
  kStock,     ///< Megatron-Core's: each shard to the least loaded holder
  kPerName,   ///< Megatron-LM PR 3392: all shards of a name to a rank whose file has one
  kPerChunk,  ///< each stored chunk to the rank whose own file has it, as far as that costs nothing
};

inline constexpr std::array kLoadRules = {LoadRule::kStock, LoadRule::kPerName,
                                          LoadRule::kPerChunk};

/// `stock`, `per_name`, `per_chunk`.
[[nodiscard]] std::string_view to_string(LoadRule rule);

/// That a rank reads a stored chunk, once.
struct PlannedRead {
  std::uint32_t rank = 0;
  std::uint32_t tensor = 0;  ///< index into LoadNeeds::tensors
  std::uint32_t chunk = 0;   ///< index into its ChunkList
};

/// What a plan makes one rank do. A file is foreign to every rank but the one in its name.
struct RankLoad {
  std::uint64_t bytes = 0;  ///< of stored chunks, read whole as torch does
  std::uint64_t foreign_bytes = 0;
  std::uint64_t sent_bytes = 0;  ///< of shards that another rank of the group needs too, once each
  std::uint64_t opens = 0;       ///< files, each once
  std::uint64_t foreign_opens = 0;
};

/// What a byte costs to read, and what to send to another rank of its group. Where ranks share a
/// machine, and with it the page cache, reading is the cheaper of the two.
struct BytePrice {
  std::uint32_t read = 1;
  std::uint32_t sent = 1;
};

/// By what plans are compared: less is better, the first first.
struct LoadCost {
  std::uint64_t heaviest_bytes = 0;  ///< of any rank, read and sent, each at its price
  std::uint64_t foreign_opens = 0;
  std::uint64_t foreign_bytes = 0;

  [[nodiscard]] friend std::strong_ordering operator<=>(const LoadCost&, const LoadCost&) = default;
};

[[nodiscard]] LoadCost cost_of(std::span<const RankLoad> ranks, const BytePrice& price = {});

struct LoadPlan {
  std::vector<PlannedRead> reads;
  std::vector<RankLoad> ranks;

  [[nodiscard]] LoadCost cost() const { return cost_of(ranks); }
};

/// Who reads which chunk, by each of kLoadRules in turn. Every rank that knows the checkpoint and
/// the job comes to the same plans. kPerChunk costs no more than either of the others, but for a
/// job that has the layout that saved the checkpoint: that reads back its own files, no more
/// unevenly than by kStock. Pure.
[[nodiscard]] std::array<LoadPlan, kLoadRules.size()> plan_loads(const LoadNeeds& needs);

}  // namespace shardwright

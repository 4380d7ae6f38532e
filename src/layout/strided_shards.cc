// SPDX-License-Identifier: Apache-2.0
#include "layout/strided_shards.h"

#include <algorithm>
#include <map>

namespace shardwright {
namespace {

constexpr std::int64_t kMostStridedRanks = 1024;

// What rank (fsdp, tp) of a mesh holds of `extent` rows.
ShardRows physical_rows(std::int64_t extent, std::int64_t fsdp_size, std::int64_t tp_size,
                        std::int64_t fsdp, std::int64_t tp) {
  const ShardRows part = chunk_of({0, extent}, tp_size, tp);
  return chunk_of(part, fsdp_size, fsdp);
}

// What the metadata of torch 2.12 and 2.13 says of that rank: the rows of all TP parts that the
// FSDP rank has, put together, are cut for TP again. Only the first row's number is kept.
ShardRows claimed_rows(std::int64_t extent, std::int64_t fsdp_size, std::int64_t tp_size,
                       std::int64_t fsdp, std::int64_t tp) {
  std::vector<ShardRows> pieces;
  std::int64_t total = 0;
  for (std::int64_t part = 0; part < tp_size; ++part) {
    pieces.push_back(physical_rows(extent, fsdp_size, tp_size, fsdp, part));
    total += pieces.back().rows;
  }
  const ShardRows of_all = chunk_of({0, total}, tp_size, tp);
  if (of_all.rows == 0) return {extent, 0};
  std::int64_t skipped = of_all.offset;
  for (const ShardRows& piece : pieces) {
    if (skipped < piece.rows) return {piece.offset + skipped, of_all.rows};
    skipped -= piece.rows;
  }
  return {extent, 0};
}

// The truth of one mesh, or nothing where the claims are not those of that mesh.
std::optional<std::vector<ShardRows>> rows_on_mesh(std::int64_t extent,
                                                   std::span<const ShardClaim> claims,
                                                   std::int64_t fsdp_size, std::int64_t tp_size) {
  std::map<std::int64_t, std::size_t> by_offset;
  std::optional<std::size_t> empty;
  for (std::size_t i = 0; i < claims.size(); ++i) {
    if (claims[i].rows > 0) {
      by_offset.emplace(claims[i].offset, i);
    } else if (empty) {
      return std::nullopt;
    } else {
      empty = i;
    }
  }
  std::vector<ShardRows> truth(claims.size(), {extent, 0});
  std::size_t explained = 0;
  std::vector<ShardRows> unclaimed;  // rows of ranks that the metadata calls empty
  for (std::int64_t fsdp = 0; fsdp < fsdp_size; ++fsdp) {
    for (std::int64_t tp = 0; tp < tp_size; ++tp) {
      const ShardRows rows = physical_rows(extent, fsdp_size, tp_size, fsdp, tp);
      const ShardRows claim = claimed_rows(extent, fsdp_size, tp_size, fsdp, tp);
      if (claim.rows == 0) {
        if (rows.rows > 0) unclaimed.push_back(rows);
        continue;
      }
      const auto found = by_offset.find(claim.offset);
      if (found == by_offset.end()) return std::nullopt;
      const ShardClaim& stored = claims[found->second];
      if (stored.rows != claim.rows || stored.stored_rows != rows.rows) return std::nullopt;
      if (rows.rows > 0) truth[found->second] = rows;
      ++explained;
    }
  }
  if (explained != by_offset.size() || unclaimed.size() > 1) return std::nullopt;
  const std::int64_t missing = unclaimed.empty() ? 0 : unclaimed.front().rows;
  if ((empty ? claims[*empty].stored_rows : 0) != missing) return std::nullopt;
  if (missing > 0) truth[*empty] = unclaimed.front();
  return truth;
}

}  // namespace

std::optional<std::vector<ShardRows>> true_shard_rows(std::int64_t extent,
                                                      std::span<const ShardClaim> claims) {
  if (extent < 1 || claims.empty()) return std::nullopt;
  const auto empties = std::ranges::count(claims, 0, &ShardClaim::rows);
  const std::int64_t shards = static_cast<std::int64_t>(claims.size()) - empties;
  // Ranks without rows share one item, so that there may be more of them than chunks.
  const std::int64_t most = empties > 0 ? std::min(kMostStridedRanks, 2 * (extent + 1)) : shards;
  std::optional<std::vector<ShardRows>> found;
  for (std::int64_t tp = 2; tp <= most; ++tp) {
    for (std::int64_t fsdp = 2; fsdp * tp <= most; ++fsdp) {
      if (fsdp * tp < shards) continue;
      std::optional<std::vector<ShardRows>> truth = rows_on_mesh(extent, claims, fsdp, tp);
      if (!truth) continue;
      if (found && *found != *truth) return std::nullopt;
      found = std::move(truth);
    }
  }
  return found;
}

}  // namespace shardwright

// SPDX-License-Identifier: Apache-2.0
#include "layout/group_plan.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <tuple>
#include <utility>

#include "layout/shard_distribution.h"
#include "tensor/stored_copy.h"

namespace shardwright {
namespace {

// Shards of a group as the rules of Megatron-Core see them.
class SharedShards {
 public:
  SharedShards(const LoadNeeds& needs, std::uint32_t group) : needs_(needs), group_(group) {
    const GroupNeeds& all = needs.groups[group];
    shards_.reserve(all.shards.size());
    for (const NeededShard& shard : all.shards) add(all, shard);
  }

  // A tensor rank's own copies are no other group's.
  void mark_elsewhere(bool only_tied) {
    const GroupNeeds& all = needs_.groups[group_];
    for (std::size_t i = 0; i < shards_.size(); ++i) {
      const NeededShard& shard = all.shards[i];
      const bool is_copied = shard.chunks > 0 && all.chunks[shard.first].copies > 1;
      shards_[i].cross_group = shard.is_tied || (shard.is_elsewhere && !only_tied && !is_copied);
    }
  }

  // The first rank of the group, in the order of ranks, whose file holds some of the name.
  void find_sources() {
    const GroupNeeds& all = needs_.groups[group_];
    std::map<std::pair<std::uint32_t, std::size_t>, std::optional<std::uint32_t>> known;
    for (std::size_t i = 0; i < shards_.size(); ++i) {
      const NeededShard& shard = all.shards[i];
      if (shard.chunks == 0) continue;
      const NeededTensor& tensor = needs_.tensors[shard.tensor];
      const std::size_t copy = copy_number(*tensor.stored, first_chunk(all, shard));
      const auto [found, is_new] = known.try_emplace(std::pair(shard.tensor, copy));
      if (is_new) found->second = first_member(tensor.writers[copy]);
      shards_[i].source = found->second;
    }
  }

  [[nodiscard]] std::span<const SharedShard> all() const { return shards_; }

 private:
  void add(const GroupNeeds& all, const NeededShard& shard) {
    const NeededTensor& tensor = needs_.tensors[shard.tensor];
    const Box box = tensor.shards.pieces[shard.piece].box;
    const auto width = static_cast<std::uint64_t>(bytes_of(tensor.stored->desc.dtype));
    shards_.push_back({.key = key_of(all, shard),
                       .offset = box.origin,
                       .bytes = static_cast<std::uint64_t>(box.volume()) * width,
                       .holders = all.holders[shard.holders]});
  }

  // Copies are stored under names of their own, by which ties are decided.
  [[nodiscard]] std::string_view key_of(const GroupNeeds& all, const NeededShard& shard) const {
    const StoredTensor& stored = *needs_.tensors[shard.tensor].stored;
    const StoredCopy* copy =
        shard.chunks > 0 ? copy_of_chunk(stored, first_chunk(all, shard)) : nullptr;
    return copy != nullptr ? copy->name : stored.desc.name;
  }

  [[nodiscard]] std::uint32_t first_chunk(const GroupNeeds& all, const NeededShard& shard) const {
    const NeededChunk& chunk = all.chunks[shard.first];
    return all.copies[chunk.first + usual_copy(needs_, group_, shard, chunk)];
  }

  [[nodiscard]] std::optional<std::uint32_t> first_member(
      std::span<const std::int64_t> writers) const {
    for (const std::int64_t rank : writers) {
      const auto place = needs_.ranks.place_of(rank);
      if (place && place->group == group_) return place->member;
    }
    return std::nullopt;
  }

  const LoadNeeds& needs_;
  std::uint32_t group_;
  std::vector<SharedShard> shards_;
};

// One member reads a shard, with all of its chunks.
GroupPlan plan_of(const LoadNeeds& needs, std::uint32_t group, const Distribution& distribution) {
  const GroupNeeds& all = needs.groups[group];
  GroupPlan plan;
  plan.reads.reserve(all.chunks.size());
  for (std::size_t i = 0; i < all.shards.size(); ++i) {
    const NeededShard& shard = all.shards[i];
    const bool is_shared = all.holders[shard.holders].size() > 1;
    for (std::uint32_t c = 0; c < shard.chunks; ++c) {
      const NeededChunk& chunk = all.chunks[shard.first + c];
      const std::uint32_t copy = usual_copy(needs, group, shard, chunk);
      plan.reads.push_back({distribution.reader[i], shard.tensor, all.copies[chunk.first + copy],
                            is_shared ? chunk.bytes : 0});
    }
  }
  plan.members = loads_of(needs, group, plan.reads);
  return plan;
}

}  // namespace

std::uint32_t usual_copy(const LoadNeeds& needs, std::uint32_t group, const NeededShard& shard,
                         const NeededChunk& chunk) {
  const StoredTensor& stored = *needs.tensors[shard.tensor].stored;
  const std::vector<std::uint32_t>& all = needs.groups[group].copies;
  std::uint32_t usual = 0;  // or the first that is no rank's own, or the first of all
  bool is_common = false;
  for (std::uint32_t i = 0; i < chunk.copies && !stored.copies.empty(); ++i) {
    const StoredCopy& copy = *copy_of_chunk(stored, all[chunk.first + i]);
    if (copy.is_shadow) continue;
    if (copy.replica == needs.ranks.tensor_rank_of(group)) return i;
    if (!copy.replica && !std::exchange(is_common, true)) usual = i;
  }
  return usual;
}

std::vector<RankLoad> loads_of(const LoadNeeds& needs, std::uint32_t group,
                               const std::vector<GroupRead>& reads) {
  std::vector<RankLoad> loads(needs.ranks.members(group));
  std::vector<std::pair<std::uint32_t, std::uint32_t>> opened;  // member, file
  opened.reserve(reads.size());
  const auto is_foreign = [&](std::uint32_t member, std::uint32_t file) {
    return needs.owners[file] != needs.ranks.rank_of(group, member);
  };
  for (const GroupRead& read : reads) {
    const ChunkList& chunks = needs.tensors[read.tensor].stored->chunks;
    const std::uint32_t file = chunks.file(read.chunk);
    RankLoad& load = loads[read.member];
    load.bytes += chunks.range(read.chunk).length;
    load.sent_bytes += read.sent_bytes;
    if (is_foreign(read.member, file)) load.foreign_bytes += chunks.range(read.chunk).length;
    if (opened.empty() || opened.back() != std::pair(read.member, file)) {
      opened.emplace_back(read.member, file);
    }
  }
  std::ranges::sort(opened);
  opened.erase(std::ranges::unique(opened).begin(), opened.end());
  for (const auto& [member, file] : opened) {
    ++loads[member].opens;
    if (is_foreign(member, file)) ++loads[member].foreign_opens;
  }
  return loads;
}

GroupPlan plan_stock(const LoadNeeds& needs, std::uint32_t group) {
  SharedShards shards(needs, group);
  shards.mark_elsewhere(false);
  const auto members = needs.ranks.members(group);
  return plan_of(needs, group, distribute_shards(shards.all(), members));
}

GroupPlan plan_per_name(const LoadNeeds& needs, std::uint32_t group) {
  SharedShards shards(needs, group);
  // Its tensor ranks count as the savers of what all of them hold, also where it is stored once.
  shards.mark_elsewhere(true);
  shards.find_sources();
  const auto members = needs.ranks.members(group);
  return plan_of(needs, group, distribute_by_source(shards.all(), members));
}

}  // namespace shardwright

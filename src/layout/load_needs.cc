// SPDX-License-Identifier: Apache-2.0
#include "layout/load_needs.h"

#include <algorithm>
#include <array>
#include <bit>
#include <map>
#include <utility>

#include "base/fail.h"
#include "layout/rank_order.h"
#include "tensor/chunk_index.h"
#include "tensor/stored_copy.h"

namespace shardwright {
namespace {

// One group's part of a set of ranks, which shards by the thousand have in common.
struct Members {
  std::uint32_t group = 0;
  std::uint32_t holders = 0;  // index into the group's list
  bool is_elsewhere = false;
};

// The stored chunks that meet a piece, those of one box behind each other.
struct Met {
  std::vector<std::uint32_t> chunks;
  std::vector<NeededChunk> boxes;  // their `first` counts from the piece's own first copy
};

// Finds the chunks of a tensor that meet a piece. Mostly the pieces are the chunks: the job has
// the layout that saved them.
class ChunkFinder {
 public:
  explicit ChunkFinder(const StoredTensor& stored) : chunks_(&stored.chunks) {
    std::int64_t elements = 0;
    for (std::size_t i = 0; i < chunks_->size(); ++i) elements += chunks_->box(i).volume();
    // More than that are copies, of which one box would not tell.
    if (elements != Box::whole(stored.desc.shape).volume()) return;
    slots_.resize(std::bit_ceil(2 * chunks_->size() + 1));
    for (std::uint32_t i = 0; i < chunks_->size(); ++i) {
      const Box box = chunks_->box(i);
      if (box.is_empty()) continue;
      const std::uint64_t hash = hash_of(box);
      std::size_t at = hash & (slots_.size() - 1);
      while (slots_[at].chunk != 0) at = (at + 1) & (slots_.size() - 1);
      slots_[at] = {static_cast<std::uint32_t>(hash >> 32), i + 1};
    }
  }

  void find(const Box& piece, std::vector<std::uint32_t>& found) {
    if (const auto same = same_as(piece)) {
      found.push_back(*same);
      return;
    }
    if (!index_) index_.emplace(*chunks_);
    index_->find(piece, found);
  }

 private:
  // Of a table by origins, which are all different: a node for each chunk would cost more.
  struct Slot {
    std::uint32_t tag = 0;
    std::uint32_t chunk = 0;  // one more than its index; 0 is free
  };

  static std::uint64_t hash_of(const Box& box) {
    std::uint64_t hash = 0;
    for (const std::int64_t at : box.origin) {
      hash = (hash ^ static_cast<std::uint64_t>(at)) * 0x9E3779B97F4A7C15U;
      hash ^= hash >> 32;
    }
    return hash;
  }

  [[nodiscard]] std::optional<std::uint32_t> same_as(const Box& piece) const {
    if (slots_.empty() || piece.is_empty()) return std::nullopt;
    const std::uint64_t hash = hash_of(piece);
    const auto tag = static_cast<std::uint32_t>(hash >> 32);
    std::size_t at = hash & (slots_.size() - 1);
    for (; slots_[at].chunk != 0; at = (at + 1) & (slots_.size() - 1)) {
      const std::uint32_t chunk = slots_[at].chunk - 1;
      if (slots_[at].tag == tag && chunks_->box(chunk) == piece) return chunk;
    }
    return std::nullopt;
  }

  const ChunkList* chunks_;
  std::vector<Slot> slots_;
  std::optional<ChunkIndex> index_;
};

void find_met(const ChunkList& chunks, ChunkFinder& finder, const Box& piece, std::uint64_t width,
              Met& met) {
  met.chunks.clear();
  met.boxes.clear();
  finder.find(piece, met.chunks);
  // Copies of a box are neighbours unless chunks of other lengths begin where it does.
  const auto box_less = [&](std::uint32_t a, std::uint32_t b) {
    const Box left = chunks.box(a);
    const Box right = chunks.box(b);
    const auto by_origin = std::lexicographical_compare_three_way(
        left.origin.begin(), left.origin.end(), right.origin.begin(), right.origin.end());
    if (by_origin != 0) return by_origin < 0;
    const auto by_shape = std::lexicographical_compare_three_way(
        left.shape.begin(), left.shape.end(), right.shape.begin(), right.shape.end());
    return by_shape != 0 ? by_shape < 0 : a < b;
  };
  if (met.chunks.size() > 1) std::ranges::sort(met.chunks, box_less);
  for (std::uint32_t i = 0; i < met.chunks.size(); ++i) {
    const Box box = chunks.box(met.chunks[i]);
    if (i > 0 && box == chunks.box(met.chunks[i - 1])) {
      ++met.boxes.back().copies;
      continue;
    }
    const auto common = intersect(box, piece);
    const std::uint64_t elements = common ? static_cast<std::uint64_t>(common->volume()) : 0;
    met.boxes.push_back({i, 1, elements * width});
  }
}

void note_writers(const LoadNeeds& needs, const Met& met, NeededTensor& tensor) {
  for (const NeededChunk& box : met.boxes) {
    for (std::uint32_t copy = 0; copy < box.copies; ++copy) {
      const std::uint32_t chunk = met.chunks[box.first + copy];
      const auto owner = needs.owners[tensor.stored->chunks.file(chunk)];
      std::vector<std::int64_t>& writers = tensor.writers[copy_number(*tensor.stored, chunk)];
      if (owner && (writers.empty() || writers.back() != *owner)) writers.push_back(*owner);
    }
  }
}

void sort_writers(NeededTensor& tensor) {
  for (std::vector<std::int64_t>& writers : tensor.writers) {
    std::ranges::sort(writers);
    writers.erase(std::ranges::unique(writers).begin(), writers.end());
  }
}

// The chunks of a shard, behind those that the group has. REQUIRES: the rest of it is set.
void append_shard(NeededShard shard, const Met& met, GroupNeeds& group) {
  shard.first = static_cast<std::uint32_t>(group.chunks.size());
  shard.chunks = static_cast<std::uint32_t>(met.boxes.size());
  group.shards.push_back(shard);
  const auto copies = static_cast<std::uint32_t>(group.copies.size());
  for (NeededChunk box : met.boxes) {
    box.first += copies;
    group.chunks.push_back(box);
  }
  group.copies.insert(group.copies.end(), met.chunks.begin(), met.chunks.end());
}

class NeedsBuilder {
 public:
  NeedsBuilder(LoadNeeds& needs, const JobLayout& layout) : needs_(needs), layout_(layout) {}

  Status add(const StoredTensor& stored) {
    const auto number = static_cast<std::uint32_t>(needs_.tensors.size());
    NeededTensor& tensor = needs_.tensors.emplace_back();
    tensor.stored = &stored;
    tensor.writers.resize(std::max<std::size_t>(stored.copies.size(), 1));
    tensor.shards = SW_TRY(layout_.place(stored.desc));
    ChunkFinder finder(stored);
    const auto width = static_cast<std::uint64_t>(bytes_of(stored.desc.dtype));
    Met met;
    for (std::uint32_t piece = 0; piece < tensor.shards.pieces.size(); ++piece) {
      find_met(stored.chunks, finder, tensor.shards.pieces[piece].box, width, met);
      note_writers(needs_, met, tensor);
      NeededShard shard{.tensor = number, .piece = piece};
      add_to_groups(shard, layout_.holders(tensor.shards, piece), met);
      if (!tensor.shards.is_tied) continue;
      shard.is_tied = true;
      add_to_groups(shard, layout_.tied_holders(tensor.shards, piece), met);
    }
    sort_writers(tensor);
    return {};
  }

 private:
  void add_to_groups(NeededShard shard, const RankRuns& ranks, const Met& met) {
    for (const Members& members : members_of(ranks)) {
      shard.holders = members.holders;
      shard.is_elsewhere = members.is_elsewhere;
      append_shard(shard, met, needs_.groups[members.group]);
    }
  }

  const std::vector<Members>& members_of(const RankRuns& ranks) {
    const auto [found, is_new] =
        members_.try_emplace(std::array{ranks.first, ranks.length, ranks.stride, ranks.runs});
    if (!is_new) return found->second;
    std::map<std::int64_t, std::vector<std::uint32_t>> by_group;
    for (std::int64_t i = 0; i < ranks.size(); ++i) {
      by_group[layout_.group_of(ranks[i])].push_back(
          static_cast<std::uint32_t>(layout_.member_of(ranks[i])));
    }
    const std::int64_t first = layout_.group_of(ranks.first);
    for (auto& [group, members] : by_group) {
      std::vector<std::vector<std::uint32_t>>& lists =
          needs_.groups[static_cast<std::size_t>(group)].holders;
      found->second.push_back({static_cast<std::uint32_t>(group),
                               static_cast<std::uint32_t>(lists.size()), group != first});
      lists.push_back(std::move(members));
    }
    return found->second;
  }

  LoadNeeds& needs_;
  const JobLayout& layout_;
  std::map<std::array<std::int64_t, 4>, std::vector<Members>> members_;
};

// What the members of one group ask for.
class AskedNeeds {
 public:
  AskedNeeds(LoadNeeds& needs, std::span<const std::vector<AskedBox>> asked) : needs_(needs) {
    for (std::uint32_t member = 0; member < asked.size(); ++member) {
      for (const AskedBox& one : asked[member]) {
        asked_[one.tensor].push_back({one.box, member});
      }
    }
  }

  Status add_all() {
    for (auto& [tensor, boxes] : asked_) SW_TRY(add(needs_.catalog->tensors[tensor], boxes));
    return {};
  }

 private:
  struct Asked {
    Box box;
    std::uint32_t member = 0;
  };

  static auto corners_of(const Asked& asked) {
    const Box& box = asked.box;
    return std::pair(std::vector<std::int64_t>(box.origin.begin(), box.origin.end()),
                     std::vector<std::int64_t>(box.shape.begin(), box.shape.end()));
  }

  Status add(const StoredTensor& stored, std::vector<Asked>& asked) {
    const auto number = static_cast<std::uint32_t>(needs_.tensors.size());
    NeededTensor& tensor = needs_.tensors.emplace_back();
    tensor.stored = &stored;
    tensor.writers.resize(std::max<std::size_t>(stored.copies.size(), 1));
    tensor.shards.pieces = OwnedChunks(stored.desc.shape.size());
    tensor.shards.is_replicated = std::ranges::any_of(
        stored.copies, [](const StoredCopy& copy) { return copy.replica.has_value(); });
    std::ranges::stable_sort(asked, {}, corners_of);
    ChunkFinder finder(stored);
    const auto width = static_cast<std::uint64_t>(bytes_of(stored.desc.dtype));
    Met met;
    for (std::size_t i = 0, end = 0; i < asked.size(); i = end) {
      std::vector<std::uint32_t> members;
      for (end = i; end < asked.size() && asked[end].box == asked[i].box; ++end) {
        members.push_back(asked[end].member);
      }
      const Box box = SW_TRY(make_box(asked[i].box.origin, asked[i].box.shape, stored.desc.shape));
      if (box.is_empty()) continue;
      find_met(stored.chunks, finder, box, width, met);
      SW_TRY(check_whole(stored, box, met));
      note_writers(needs_, met, tensor);
      const auto piece = static_cast<std::uint32_t>(tensor.shards.pieces.size());
      tensor.shards.pieces.push_back({box, needs_.ranks.rank_of(0, members.front())});
      append_shard({.tensor = number, .piece = piece, .holders = holders_of(std::move(members))},
                   met, needs_.groups.front());
    }
    sort_writers(tensor);
    return {};
  }

  static Status check_whole(const StoredTensor& stored, const Box& box, const Met& met) {
    std::uint64_t bytes = 0;
    for (const NeededChunk& chunk : met.boxes) bytes += chunk.bytes;
    const std::int64_t wanted = SW_TRY(byte_count(box.shape, stored.desc.dtype));
    if (std::cmp_equal(bytes, wanted)) return {};
    SW_TRY(check_coverage(stored));
    return fail(Code::kHole, "tensor {}: not all of {} is stored", stored.desc.name,
                to_string(box));
  }

  std::uint32_t holders_of(std::vector<std::uint32_t> members) {
    members.erase(std::ranges::unique(members).begin(), members.end());
    std::vector<std::vector<std::uint32_t>>& lists = needs_.groups.front().holders;
    const auto number = static_cast<std::uint32_t>(lists.size());
    const auto [found, is_new] = holders_.try_emplace(members, number);
    if (is_new) lists.push_back(std::move(members));
    return found->second;
  }

  LoadNeeds& needs_;
  std::map<std::uint32_t, std::vector<Asked>> asked_;  // by tensor
  std::map<std::vector<std::uint32_t>, std::uint32_t> holders_;
};

}  // namespace

Result<LoadNeeds> needs_of(const Catalog& catalog, std::span<const std::uint32_t> which,
                           const JobLayout& layout) {
  LoadNeeds needs;
  needs.catalog = &catalog;
  needs.ranks = LoadGroups(layout);
  needs.groups.resize(static_cast<std::size_t>(layout.groups()));
  for (const std::string& file : catalog.files) needs.owners.push_back(rank_of_file(file));
  needs.tensors.reserve(which.size());
  NeedsBuilder builder(needs, layout);
  for (const std::uint32_t index : which) SW_TRY(builder.add(catalog.tensors[index]));
  return needs;
}

Result<LoadNeeds> needs_of_members(const Catalog& catalog, LoadGroups group,
                                   std::span<const std::vector<AskedBox>> asked) {
  LoadNeeds needs;
  needs.catalog = &catalog;
  needs.ranks = std::move(group);
  needs.groups.resize(1);
  for (const std::string& file : catalog.files) needs.owners.push_back(rank_of_file(file));
  SW_TRY(AskedNeeds(needs, asked).add_all());
  return needs;
}

}  // namespace shardwright

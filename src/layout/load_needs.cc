// SPDX-License-Identifier: Apache-2.0
#include "layout/load_needs.h"

#include <algorithm>
#include <array>
#include <bit>
#include <map>
#include <utility>

#include "layout/rank_order.h"
#include "tensor/chunk_index.h"

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

class NeedsBuilder {
 public:
  explicit NeedsBuilder(LoadNeeds& needs) : needs_(needs) {}

  Status add(const StoredTensor& stored) {
    const auto number = static_cast<std::uint32_t>(needs_.tensors.size());
    NeededTensor& tensor = needs_.tensors.emplace_back();
    tensor.stored = &stored;
    tensor.shards = SW_TRY(needs_.layout->place(stored.desc));
    ChunkFinder finder(stored);
    const auto width = static_cast<std::uint64_t>(bytes_of(stored.desc.dtype));
    Met met;
    for (std::uint32_t piece = 0; piece < tensor.shards.pieces.size(); ++piece) {
      meet(stored.chunks, finder, tensor.shards.pieces[piece].box, width, met);
      note_writers(tensor, met);
      NeededShard shard{.tensor = number, .piece = piece};
      add_to_groups(shard, needs_.layout->holders(tensor.shards, piece), met);
      if (!tensor.shards.is_tied) continue;
      shard.is_tied = true;
      add_to_groups(shard, needs_.layout->tied_holders(tensor.shards, piece), met);
    }
    for (std::vector<std::int64_t>& writers : tensor.writers) {
      std::ranges::sort(writers);
      writers.erase(std::ranges::unique(writers).begin(), writers.end());
    }
    return {};
  }

 private:
  static void meet(const ChunkList& chunks, ChunkFinder& finder, const Box& piece,
                   std::uint64_t width, Met& met) {
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

  void note_writers(NeededTensor& tensor, const Met& met) const {
    for (const NeededChunk& box : met.boxes) {
      if (tensor.writers.size() < box.copies) tensor.writers.resize(box.copies);
      for (std::uint32_t copy = 0; copy < box.copies; ++copy) {
        const auto owner = needs_.owners[tensor.stored->chunks.file(met.chunks[box.first + copy])];
        std::vector<std::int64_t>& writers = tensor.writers[copy];
        if (owner && (writers.empty() || writers.back() != *owner)) writers.push_back(*owner);
      }
    }
  }

  void add_to_groups(NeededShard shard, const RankRuns& ranks, const Met& met) {
    for (const Members& members : members_of(ranks)) {
      GroupNeeds& group = needs_.groups[members.group];
      shard.holders = members.holders;
      shard.is_elsewhere = members.is_elsewhere;
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
  }

  const std::vector<Members>& members_of(const RankRuns& ranks) {
    const auto [found, is_new] =
        members_.try_emplace(std::array{ranks.first, ranks.length, ranks.stride, ranks.runs});
    if (!is_new) return found->second;
    std::map<std::int64_t, std::vector<std::uint32_t>> by_group;
    for (std::int64_t i = 0; i < ranks.size(); ++i) {
      by_group[needs_.layout->group_of(ranks[i])].push_back(
          static_cast<std::uint32_t>(needs_.layout->member_of(ranks[i])));
    }
    const std::int64_t first = needs_.layout->group_of(ranks.first);
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
  std::map<std::array<std::int64_t, 4>, std::vector<Members>> members_;
};

}  // namespace

Result<LoadNeeds> needs_of(const Catalog& catalog, std::span<const std::uint32_t> which,
                           const JobLayout& layout) {
  LoadNeeds needs;
  needs.catalog = &catalog;
  needs.layout = &layout;
  needs.groups.resize(static_cast<std::size_t>(layout.groups()));
  for (const std::string& file : catalog.files) needs.owners.push_back(rank_of_file(file));
  needs.tensors.reserve(which.size());
  NeedsBuilder builder(needs);
  for (const std::uint32_t index : which) SW_TRY(builder.add(catalog.tensors[index]));
  return needs;
}

}  // namespace shardwright

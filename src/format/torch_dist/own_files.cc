// SPDX-License-Identifier: Apache-2.0
#include "format/torch_dist/own_files.h"

#include <map>
#include <span>
#include <tuple>
#include <vector>

#include "dcp/replica_name.h"
#include "layout/shard_distribution.h"

namespace shardwright {
namespace {

using Members = std::vector<std::uint32_t>;

// The ranks of a group that hold a piece. There are few such sets, and many pieces.
class Holders {
 public:
  explicit Holders(const JobLayout& job) : job_(job) {}

  const Members& of(std::int64_t group, const RankRuns& ranks) {
    const std::tuple key(group, ranks.first, ranks.length, ranks.stride, ranks.runs);
    const auto [found, is_new] = sets_.try_emplace(key);
    if (is_new) {
      for (std::int64_t i = 0; i < ranks.size(); ++i) {
        if (job_.group_of(ranks[i]) != group) continue;
        found->second.push_back(static_cast<std::uint32_t>(job_.member_of(ranks[i])));
      }
    }
    return found->second;
  }

 private:
  using Key = std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t, std::int64_t>;

  const JobLayout& job_;
  std::map<Key, Members> sets_;
};

// A piece that a group shares out.
struct SharedPiece {
  std::uint32_t tensor = 0;
  std::uint32_t chunk = 0;
  const Members* holders = nullptr;
};

// The pieces of each group.
using Groups = std::vector<std::vector<SharedPiece>>;

Status add_pieces(const JobLayout& job, std::uint32_t index, const TorchDistTensor& tensor,
                  Holders& holders, Groups& groups) {
  TensorDesc desc = tensor.desc;
  std::int64_t copy = 0;
  if (const auto replica = parse_replica_name(tensor.desc.name)) {
    desc.name = std::string(replica->tensor);
    copy = replica->replica.value_or(0);
  }
  const JobShards shards = SW_TRY(job.place(desc));
  for (std::uint32_t i = 0; i < tensor.chunks.size(); ++i) {
    const RankRuns ranks = job.holders(shards, i);
    // Tensor ranks are neighbours.
    const std::int64_t group = job.group_of(ranks.first + copy);
    groups[static_cast<std::size_t>(group)].push_back({index, i, &holders.of(group, ranks)});
  }
  return {};
}

void share_out(const JobLayout& job, std::int64_t group, std::span<const SharedPiece> pieces,
               std::vector<TorchDistTensor>& tensors) {
  std::vector<SharedShard> shards;
  shards.reserve(pieces.size());
  for (const SharedPiece& piece : pieces) {
    const TorchDistTensor& tensor = tensors[piece.tensor];
    const Box box = tensor.chunks[piece.chunk].box;
    const auto bytes = static_cast<std::uint64_t>(box.volume() * bytes_of(tensor.desc.dtype));
    // What other groups save sorts behind all of these, so that it changes nothing.
    shards.push_back({tensor.desc.name, box.origin, bytes, *piece.holders, false, std::nullopt});
  }
  const Distribution readers =
      distribute_shards(shards, static_cast<std::size_t>(job.group_size()));
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    tensors[pieces[i].tensor].chunks.set_owner(pieces[i].chunk,
                                               job.rank_of(group, readers.reader[i]));
  }
}

}  // namespace

Status put_into_own_files(const JobLayout& job, PlacedParts& placed) {
  Holders holders(job);
  Groups groups(static_cast<std::size_t>(job.groups()));
  for (std::uint32_t i = 0; i < placed.tensors.size(); ++i) {
    TorchDistTensor& tensor = placed.tensors[i];
    if (is_held_by_ranks(tensor.desc.name)) {
      SW_TRY(add_pieces(job, i, tensor, holders, groups));
      continue;
    }
    for (std::size_t c = 0; c < tensor.chunks.size(); ++c) tensor.chunks.set_owner(c, 0);
  }
  for (std::int64_t group = 0; group < job.groups(); ++group) {
    share_out(job, group, groups[static_cast<std::size_t>(group)], placed.tensors);
  }
  for (TorchDistObject& object : placed.objects)
    object.owner = job.rank_of_object(object.name).value_or(0);
  return {};
}

}  // namespace shardwright

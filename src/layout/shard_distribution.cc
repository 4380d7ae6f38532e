// SPDX-License-Identifier: Apache-2.0
#include "layout/shard_distribution.h"

#include <algorithm>
#include <functional>
#include <map>
#include <queue>
#include <utility>

namespace shardwright {
namespace {

// Bytes of each rank, and the rank that has the fewest; of several the first.
class Loads {
 public:
  explicit Loads(std::size_t ranks) : loads_(ranks, 0) {
    for (std::uint32_t rank = 0; rank < ranks; ++rank) lightest_.emplace(0, rank);
  }

  std::uint32_t least_of(std::span<const std::uint32_t> ranks) {
    if (ranks.size() != loads_.size()) return least_among(ranks);
    // A group mostly holds everything alike; then nobody need be asked. What has become heavier
    // since it was queued is queued anew.
    while (lightest_.top().first != loads_[lightest_.top().second]) {
      const std::uint32_t rank = lightest_.top().second;
      lightest_.pop();
      lightest_.emplace(loads_[rank], rank);
    }
    const std::uint32_t rank = lightest_.top().second;
    return std::ranges::find(ranks, rank) != ranks.end() ? rank : least_among(ranks);
  }

  void add(std::uint32_t rank, std::uint64_t bytes) { loads_[rank] += bytes; }
  std::vector<std::uint64_t> take() && { return std::move(loads_); }

 private:
  using Load = std::pair<std::uint64_t, std::uint32_t>;

  std::uint32_t least_among(std::span<const std::uint32_t> ranks) const {
    return *std::ranges::min_element(ranks, {},
                                     [&](std::uint32_t rank) { return Load(loads_[rank], rank); });
  }

  std::vector<std::uint64_t> loads_;
  // One entry for each rank, never heavier than the rank is.
  std::priority_queue<Load, std::vector<Load>, std::greater<>> lightest_;
};

// As Python compares tuples: a tuple that another one begins with comes first.
bool is_less(const Dims& a, const Dims& b) {
  return std::lexicographical_compare(a.begin(), a.end(), b.begin(), b.end());
}

// What decides whose turn it is, packed: a group shares out shards by the ten thousand.
struct Turn {
  std::uint64_t holders = 0;  // and before them, whether another group saves the shard too
  std::uint64_t bytes = 0;    // the complement: the largest comes first
  std::uint32_t name = 0;
  std::uint32_t shard = 0;
};

std::vector<std::uint32_t> first_numbers(std::size_t count) {
  std::vector<std::uint32_t> numbers(count);
  for (std::uint32_t i = 0; i < count; ++i) numbers[i] = i;
  return numbers;
}

// Where each shard's key stands among all keys. UTF-8 sorts as code points do, by which Python
// compares.
std::vector<std::uint32_t> name_order(std::span<const SharedShard> shards,
                                      std::span<const std::uint32_t> which) {
  // Shards of one tensor are neighbours and share their key's text, so few keys are compared.
  std::vector<std::uint32_t> run_of(which.size());
  std::vector<std::string_view> runs;
  for (std::size_t i = 0; i < which.size(); ++i) {
    const std::string_view key = shards[which[i]].key;
    const bool is_same =
        !runs.empty() && runs.back().data() == key.data() && runs.back().size() == key.size();
    if (!is_same) runs.push_back(key);
    run_of[i] = static_cast<std::uint32_t>(runs.size() - 1);
  }
  std::vector<std::uint32_t> by_name = first_numbers(runs.size());
  std::ranges::sort(by_name, {}, [&](std::uint32_t run) { return runs[run]; });
  std::vector<std::uint32_t> place(runs.size(), 0);
  for (std::size_t i = 1; i < by_name.size(); ++i) {
    const bool is_new = runs[by_name[i]] != runs[by_name[i - 1]];
    place[by_name[i]] = place[by_name[i - 1]] + (is_new ? 1 : 0);
  }
  for (std::uint32_t& run : run_of) run = place[run];
  return run_of;
}

void distribute_greedily(std::span<const SharedShard> shards, std::span<const std::uint32_t> which,
                         Loads& loads, std::vector<std::uint32_t>& reader) {
  const std::vector<std::uint32_t> names = name_order(shards, which);
  std::vector<Turn> turns;
  turns.reserve(which.size());
  for (std::size_t i = 0; i < which.size(); ++i) {
    const SharedShard& shard = shards[which[i]];
    const std::uint64_t last = std::uint64_t{shard.cross_group} << 32;
    turns.push_back({last | shard.holders.size(), ~shard.bytes, names[i], which[i]});
  }
  std::ranges::sort(turns, [&](const Turn& a, const Turn& b) {
    if (a.holders != b.holders) return a.holders < b.holders;
    if (a.bytes != b.bytes) return a.bytes < b.bytes;
    if (a.name != b.name) return a.name < b.name;
    return is_less(shards[a.shard].offset, shards[b.shard].offset);
  });
  for (const Turn& turn : turns) {
    reader[turn.shard] = loads.least_of(shards[turn.shard].holders);
    loads.add(reader[turn.shard], shards[turn.shard].bytes);
  }
}

// The shards of one source, and who holds all of them.
struct SourceGroup {
  std::uint32_t source = 0;
  std::uint64_t bytes = 0;
  std::vector<std::uint32_t> shards;
  std::vector<std::uint32_t> candidates;  // ascending
};

std::vector<std::uint32_t> sorted(std::span<const std::uint32_t> ranks) {
  std::vector<std::uint32_t> result(ranks.begin(), ranks.end());
  std::ranges::sort(result);
  result.erase(std::ranges::unique(result).begin(), result.end());
  return result;
}

// Largest first.
std::vector<SourceGroup> groups_of(std::span<const SharedShard> shards) {
  std::map<std::uint32_t, SourceGroup> by_source;
  for (std::uint32_t i = 0; i < shards.size(); ++i) {
    if (!shards[i].source) continue;
    SourceGroup& group = by_source[*shards[i].source];
    group.source = *shards[i].source;
    group.bytes += shards[i].bytes;
    std::vector<std::uint32_t> holders = sorted(shards[i].holders);
    if (group.shards.empty()) {
      group.candidates = std::move(holders);
    } else {
      std::erase_if(group.candidates,
                    [&](std::uint32_t rank) { return !std::ranges::binary_search(holders, rank); });
    }
    group.shards.push_back(i);
  }
  std::vector<SourceGroup> groups;
  for (auto& [source, group] : by_source) groups.push_back(std::move(group));
  std::ranges::stable_sort(groups, std::greater<>(), &SourceGroup::bytes);
  return groups;
}

}  // namespace

Distribution distribute_shards(std::span<const SharedShard> shards, std::size_t ranks) {
  Distribution result{std::vector<std::uint32_t>(shards.size()), {}};
  Loads loads(ranks);
  distribute_greedily(shards, first_numbers(shards.size()), loads, result.reader);
  result.load = std::move(loads).take();
  return result;
}

Distribution distribute_by_source(std::span<const SharedShard> shards, std::size_t ranks) {
  Distribution result{std::vector<std::uint32_t>(shards.size()), {}};
  Loads loads(ranks);
  std::vector<std::uint32_t> rest;
  for (std::uint32_t i = 0; i < shards.size(); ++i) {
    if (!shards[i].source) rest.push_back(i);
  }
  for (const SourceGroup& group : groups_of(shards)) {
    if (group.candidates.empty()) {
      rest.insert(rest.end(), group.shards.begin(), group.shards.end());
      continue;
    }
    const bool holds_all = std::ranges::binary_search(group.candidates, group.source);
    const std::uint32_t rank = holds_all ? group.source : loads.least_of(group.candidates);
    for (const std::uint32_t index : group.shards) result.reader[index] = rank;
    loads.add(rank, group.bytes);
  }
  distribute_greedily(shards, rest, loads, result.reader);
  result.load = std::move(loads).take();
  return result;
}

}  // namespace shardwright

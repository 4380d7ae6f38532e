// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <span>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "layout/chunk_units.h"
#include "layout/group_plan.h"

namespace shardwright {
namespace {

struct Weight {
  std::uint64_t read = 0;
  std::uint64_t total = 0;  // and sent

  // Of the heaviest member.
  [[nodiscard]] static Weight of(const std::vector<RankLoad>& members) {
    Weight most;
    for (const RankLoad& load : members) {
      most.read = std::max(most.read, load.bytes);
      most.total = std::max(most.total, load.bytes + load.sent_bytes);
    }
    return most;
  }
};

// What members have been given so far.
class Readers {
 public:
  Readers(const ChunkUnits& units, std::size_t members) : units_(units), loads_(members) {
    reads_.reserve(units.size());
  }

  [[nodiscard]] const Weight& load(std::uint32_t member) const { return loads_[member]; }
  [[nodiscard]] bool has_open(std::uint32_t member, std::uint32_t file) const {
    return opened_.contains(std::uint64_t{member} << 32 | file);
  }
  void give(const UnitPlace& place, std::uint32_t member) {
    const std::uint64_t sent = units_.sent_by(place.unit, member);
    loads_[member].read += place.bytes;
    loads_[member].total += place.bytes + sent;
    opened_.insert(std::uint64_t{member} << 32 | place.file);
    reads_.push_back({member, units_.tensor(place.unit), place.chunk, sent});
  }
  [[nodiscard]] std::vector<GroupRead> take() && { return std::move(reads_); }

 private:
  const ChunkUnits& units_;
  std::vector<Weight> loads_;
  std::unordered_set<std::uint64_t> opened_;
  std::vector<GroupRead> reads_;
};

// Gives each member first what lies in its own file, whole files before parts of them, until it
// would become heavier than `bound`. The rest goes file by file to the member that has the file
// open already, then to the one with the most room.
class FileByFile {
 public:
  FileByFile(const ChunkUnits& units, std::size_t members, const Weight& bound)
      : units_(units), readers_(units, members), bound_(bound) {}

  std::vector<GroupRead> assign() && {
    std::vector<UnitPlace> pool = keep_own();
    std::ranges::sort(pool, {}, [&](const UnitPlace& place) {
      return std::tuple(place.file_order, units_.holders_number(place.unit), ~place.bytes,
                        place.unit);
    });
    for (auto first = pool.begin(); first != pool.end();) {
      const auto last = std::find_if(first, pool.end(), [&](const UnitPlace& place) {
        return place.file != first->file ||
               units_.holders_number(place.unit) != units_.holders_number(first->unit);
      });
      share_out({first, last});
      first = last;
    }
    return std::move(readers_).take();
  }

 private:
  // Returns what nobody has in a file of its own, or has no room for.
  std::vector<UnitPlace> keep_own() {
    std::vector<ChunkUnits::Own> own;
    std::vector<UnitPlace> pool;
    for (std::uint32_t unit = 0; unit < units_.size(); ++unit) {
      if (const auto found = units_.own_place(unit)) {
        own.push_back(*found);
      } else {
        pool.push_back(units_.usual_place(unit));
      }
    }
    std::ranges::sort(own, {}, [&](const ChunkUnits::Own& one) {
      return std::tuple(one.member, one.place.file_order, ~one.place.bytes, one.place.unit);
    });
    for (const auto& [place, member] : own) {
      if (fits(place, member)) {
        readers_.give(place, member);
      } else {
        pool.push_back(units_.usual_place(place.unit));
      }
    }
    return pool;
  }

  // Shares out places in one file that the same members need, the largest first.
  void share_out(std::span<const UnitPlace> places) {
    const std::vector<std::uint32_t>& holders = units_.holders(places.front().unit);
    const std::uint32_t file = places.front().file;
    std::vector<UnitPlace> left(places.begin(), places.end());
    std::vector<std::uint32_t> order(holders);
    std::ranges::sort(order, {}, [&](std::uint32_t member) {
      return std::tuple(!readers_.has_open(member, file), readers_.load(member).total, member);
    });
    for (const std::uint32_t member : order) {
      std::erase_if(left, [&](const UnitPlace& place) {
        const bool takes = fits(place, member);
        if (takes) readers_.give(place, member);
        return takes;
      });
      if (left.empty()) return;
    }
    for (const UnitPlace& place : left) {
      readers_.give(place, *std::ranges::min_element(holders, {}, [&](std::uint32_t member) {
                      return std::pair(readers_.load(member).total, member);
                    }));
    }
  }

  [[nodiscard]] bool fits(const UnitPlace& place, std::uint32_t member) const {
    const Weight& load = readers_.load(member);
    return load.read + place.bytes <= bound_.read &&
           load.total + place.bytes + units_.sent_by(place.unit, member) <= bound_.total;
  }

  const ChunkUnits& units_;
  Readers readers_;
  Weight bound_;
};

// Gives each member as many chunks of each size as `stock` does, so that all weigh what they weigh
// there, and chooses which: first those in its own file, then those in one that it has open.
class SameShares {
 public:
  SameShares(const ChunkUnits& units, const GroupPlan& stock)
      : units_(units), readers_(units, stock.members.size()), kinds_(units.size()) {
    std::map<std::tuple<std::uint64_t, std::uint64_t, std::uint32_t>, std::uint32_t> numbers;
    for (std::uint32_t unit = 0; unit < units.size(); ++unit) {
      const auto kind = std::tuple(units.usual_place(unit).bytes, units.needed_bytes(unit),
                                   units.holders_number(unit));
      const auto number = static_cast<std::uint32_t>(numbers.size());
      kinds_[unit] = numbers.try_emplace(kind, number).first->second;
      ++left(kinds_[unit], stock.reads[units.mention(unit)].member);
    }
  }

  std::vector<GroupRead> assign() && {
    std::vector<UnitPlace> pool;
    for (std::uint32_t unit = 0; unit < units_.size(); ++unit) {
      const auto own = units_.own_place(unit);
      if (own && take(kinds_[unit], own->member)) {
        readers_.give(own->place, own->member);
      } else {
        pool.push_back(units_.usual_place(unit));
      }
    }
    std::ranges::sort(pool, {}, [&](const UnitPlace& place) {
      return std::tuple(place.file_order, kinds_[place.unit], place.unit);
    });
    for (const UnitPlace& place : pool) readers_.give(place, next_reader(place));
    return std::move(readers_).take();
  }

 private:
  std::uint32_t& left(std::uint32_t kind, std::uint32_t member) {
    return left_[std::uint64_t{kind} << 32 | member];
  }
  bool take(std::uint32_t kind, std::uint32_t member) {
    const auto found = left_.find(std::uint64_t{kind} << 32 | member);
    if (found == left_.end() || found->second == 0) return false;
    --found->second;
    return true;
  }

  // The reader of the chunk before it gets this one too, as long as it has room left.
  std::uint32_t next_reader(const UnitPlace& place) {
    const std::uint32_t kind = kinds_[place.unit];
    if (place.file == last_file_ && take(kind, last_reader_)) return last_reader_;
    std::uint32_t best = 0;
    auto best_order = std::tuple(true, ~std::uint64_t{0});
    for (const std::uint32_t member : units_.holders(place.unit)) {
      const std::uint64_t count = left(kind, member);
      const auto order = std::tuple(!readers_.has_open(member, place.file), ~count);
      if (count == 0 || order >= best_order) continue;
      best = member;
      best_order = order;
    }
    last_file_ = place.file;
    last_reader_ = best;
    take(kind, best);
    return best;
  }

  const ChunkUnits& units_;
  Readers readers_;
  std::vector<std::uint32_t> kinds_;  // units of one kind weigh the same
  std::unordered_map<std::uint64_t, std::uint32_t> left_;
  std::uint32_t last_file_ = ~std::uint32_t{0};
  std::uint32_t last_reader_ = 0;
};

std::pair<std::uint64_t, std::uint64_t> foreign(const std::vector<RankLoad>& members) {
  std::pair<std::uint64_t, std::uint64_t> sum;
  for (const RankLoad& load : members) {
    sum.first += load.foreign_opens;
    sum.second += load.foreign_bytes;
  }
  return sum;
}

bool keeps_own(const LoadNeeds& needs, std::uint32_t group, const ChunkUnits& units,
               const std::vector<GroupRead>& reads) {
  std::size_t own = 0;
  for (std::uint32_t unit = 0; unit < units.size(); ++unit) {
    const bool has_writer = units.own_place(unit).has_value();
    if (!has_writer && !units.is_elsewhere(unit)) return false;
    if (has_writer) ++own;
  }
  const auto is_own = [&](const GroupRead& read) {
    const std::uint32_t file = needs.tensors[read.tensor].stored->chunks.file(read.chunk);
    return needs.owners[file] == needs.ranks.rank_of(group, read.member);
  };
  return static_cast<std::size_t>(std::ranges::count_if(reads, is_own)) == own;
}

}  // namespace

GroupPlan plan_per_chunk(const LoadNeeds& needs, std::uint32_t group, const GroupPlan& stock) {
  const Weight bound = Weight::of(stock.members);
  const ChunkUnits units(needs, group);
  GroupPlan best = stock;
  const auto consider = [&](std::vector<GroupRead> reads) {
    GroupPlan plan;
    plan.reads = std::move(reads);
    plan.members = loads_of(needs, group, plan.reads);
    const Weight reached = Weight::of(plan.members);
    if (reached.read > bound.read || reached.total > bound.total) return;
    if (foreign(plan.members) <= foreign(best.members)) best = std::move(plan);
  };
  consider(SameShares(units, stock).assign());
  best.keeps_own = keeps_own(needs, group, units, best.reads);
  if (best.keeps_own && foreign(best.members).second == 0) return best;
  consider(FileByFile(units, stock.members.size(), bound).assign());
  best.keeps_own = keeps_own(needs, group, units, best.reads);
  return best;
}

GroupPlan plan_by_owner(const LoadNeeds& needs, std::uint32_t group) {
  constexpr Weight kNoBound{~std::uint64_t{0} / 2, ~std::uint64_t{0} / 2};
  const ChunkUnits units(needs, group);
  GroupPlan plan;
  plan.reads = FileByFile(units, needs.ranks.members(group), kNoBound).assign();
  plan.members = loads_of(needs, group, plan.reads);
  return plan;
}

}  // namespace shardwright

// SPDX-License-Identifier: Apache-2.0
#include "layout/chunk_units.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace shardwright {

ChunkUnits::ChunkUnits(const LoadNeeds& needs, std::uint32_t group)
    : needs_(needs), all_(needs.groups[group]), group_(group), holders_(all_.holders) {
  find_units();
  order_files();
}

void ChunkUnits::order_files() {
  std::unordered_map<std::uint32_t, std::uint64_t> bytes;
  for (std::uint32_t unit = 0; unit < size(); ++unit) {
    const NeededChunk& chunk = chunk_of(parts_of(unit));
    const ChunkList& chunks = needs_.tensors[tensor(unit)].stored->chunks;
    for (std::uint32_t copy = 0; copy < chunk.copies; ++copy) {
      const std::uint32_t index = all_.copies[chunk.first + copy];
      bytes[chunks.file(index)] += chunks.range(index).length;
    }
  }
  std::vector<std::pair<std::uint64_t, std::uint32_t>> files;
  for (const auto& [file, needed] : bytes) files.emplace_back(~needed, file);
  std::ranges::sort(files);
  for (std::uint32_t i = 0; i < files.size(); ++i) file_orders_.emplace(files[i].second, i);
}

void ChunkUnits::find_units() {
  parts_.reserve(all_.chunks.size());
  for (const NeededShard& shard : all_.shards) {
    for (std::uint32_t c = 0; c < shard.chunks; ++c) {
      parts_.push_back(
          {shard.tensor, shard.first + c, shard.holders, shard.is_elsewhere || shard.is_tied});
    }
  }
  const auto key = [&](const Part& part) {
    return std::pair(part.tensor, all_.copies[chunk_of(part).first]);
  };
  if (!std::ranges::is_sorted(parts_, {}, key)) std::ranges::stable_sort(parts_, {}, key);
  for (std::uint32_t i = 0; i < parts_.size(); ++i) {
    if (i == 0 || key(parts_[i]) != key(parts_[i - 1])) {
      units_.push_back({.first = i, .holders = parts_[i].holders});
    }
    Unit& unit = units_.back();
    ++unit.parts;
    unit.is_elsewhere = unit.is_elsewhere && parts_[i].is_elsewhere;
    unit.needed_bytes += chunk_of(parts_[i]).bytes;
    if (unit.holders != parts_[i].holders) unit.holders = joined(unit.holders, parts_[i].holders);
  }
}

// The number of a list of the members in both.
std::uint32_t ChunkUnits::joined(std::uint32_t a, std::uint32_t b) {
  const auto [found, is_new] = joined_.try_emplace(std::uint64_t{a} << 32 | b);
  if (is_new) {
    std::vector<std::uint32_t> both;
    std::ranges::set_union(holders_[a], holders_[b], std::back_inserter(both));
    const auto same = std::ranges::find(holders_, both);
    found->second = static_cast<std::uint32_t>(same - holders_.begin());
    if (same == holders_.end()) holders_.push_back(std::move(both));
  }
  return found->second;
}

UnitPlace ChunkUnits::place(std::uint32_t unit, std::uint32_t copy) const {
  const ChunkList& chunks = needs_.tensors[tensor(unit)].stored->chunks;
  const std::uint32_t chunk = all_.copies[chunk_of(parts_of(unit)).first + copy];
  const std::uint32_t file = chunks.file(chunk);
  return {unit, chunk, file, file_orders_.at(file), chunks.range(chunk).length};
}

std::optional<ChunkUnits::Own> ChunkUnits::own_place(std::uint32_t unit) const {
  for (std::uint32_t copy = 0; copy < chunk_of(parts_of(unit)).copies; ++copy) {
    const UnitPlace found = place(unit, copy);
    const auto owner = needs_.owners[found.file];
    const auto place = owner ? needs_.ranks.place_of(*owner) : std::nullopt;
    if (!place || place->group != group_) continue;
    if (std::ranges::binary_search(holders(unit), place->member)) return Own{found, place->member};
  }
  return std::nullopt;
}

UnitPlace ChunkUnits::place_for(std::uint32_t unit, std::uint32_t member) const {
  for (std::uint32_t copy = 0; copy < chunk_of(parts_of(unit)).copies; ++copy) {
    const UnitPlace found = place(unit, copy);
    if (needs_.owners[found.file] == needs_.ranks.rank_of(group_, member)) return found;
  }
  return usual_place(unit);
}

UnitPlace ChunkUnits::usual_place(std::uint32_t unit) const {
  UnitPlace best = place(unit, 0);
  for (std::uint32_t copy = 1; copy < chunk_of(parts_of(unit)).copies; ++copy) {
    const UnitPlace found = place(unit, copy);
    if (found.file_order < best.file_order) best = found;
  }
  return best;
}

std::uint64_t ChunkUnits::sent_by(std::uint32_t unit, std::uint32_t member) const {
  std::uint64_t bytes = 0;
  for (std::uint32_t i = 0; i < units_[unit].parts; ++i) {
    const Part& part = parts_[units_[unit].first + i];
    const std::vector<std::uint32_t>& holders = holders_[part.holders];
    if (holders.size() > 1 || holders.front() != member) bytes += chunk_of(part).bytes;
  }
  return bytes;
}

}  // namespace shardwright

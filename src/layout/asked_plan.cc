// SPDX-License-Identifier: Apache-2.0
#include "layout/asked_plan.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "layout/chunk_units.h"
#include "tensor/chunk_index.h"

namespace shardwright {
namespace {

constexpr std::uint32_t kOnlyGroup = 0;

GroupPlan plan_alone(const LoadNeeds& needs) {
  const ChunkUnits units(needs, kOnlyGroup);
  GroupPlan plan;
  for (std::uint32_t unit = 0; unit < units.size(); ++unit) {
    for (const std::uint32_t member : units.holders(unit)) {
      const UnitPlace place = units.place_for(unit, member);
      plan.reads.push_back({member, units.tensor(unit), place.chunk, 0});
    }
  }
  plan.members = loads_of(needs, kOnlyGroup, plan.reads);
  return plan;
}

GroupPlan plan_shared(const LoadNeeds& needs) {
  GroupPlan per_chunk = plan_per_chunk(needs, kOnlyGroup, plan_stock(needs, kOnlyGroup));
  if (per_chunk.keeps_own) return per_chunk;
  GroupPlan per_name = plan_per_name(needs, kOnlyGroup);
  return cost_of(per_name.members) < cost_of(per_chunk.members) ? per_name : per_chunk;
}

void sort_by_place(const LoadNeeds& needs, std::vector<GroupRead>& reads) {
  std::ranges::sort(reads, {}, [&](const GroupRead& read) {
    const ChunkList& chunks = needs.tensors[read.tensor].stored->chunks;
    return std::tuple(read.member, chunks.file(read.chunk), chunks.range(read.chunk).offset,
                      read.tensor, read.chunk);
  });
  // Where one shard needs a chunk that another one needs too, by the rule for whole shards.
  const auto is_same = [](const GroupRead& a, const GroupRead& b) {
    return a.member == b.member && a.tensor == b.tensor && a.chunk == b.chunk;
  };
  reads.erase(std::ranges::unique(reads, is_same).begin(), reads.end());
}

// The boxes that are asked for of one tensor.
struct AskedTensor {
  explicit AskedTensor(int axes) : boxes(axes) {}

  ChunkList boxes;                                               // a member for a file
  std::vector<std::uint32_t> numbers;                            // in what the member asked for
  std::optional<ChunkIndex> index;                               // once all boxes are there
  std::set<std::tuple<std::uint32_t, std::string>> read_itself;  // member, box
};

}  // namespace

GroupPlan plan_members(const LoadNeeds& needs, const AskedRule& rule) {
  GroupPlan plan = rule.by_owner ? plan_by_owner(needs, kOnlyGroup) : plan_shared(needs);
  if (!rule.by_owner && rule.price.read < rule.price.sent) {
    GroupPlan alone = plan_alone(needs);
    const auto heaviest = [&](const GroupPlan& one) {
      return cost_of(one.members, rule.price).heaviest_bytes;
    };
    if (heaviest(alone) < heaviest(plan)) plan = std::move(alone);
  }
  sort_by_place(needs, plan.reads);
  plan.members = loads_of(needs, kOnlyGroup, plan.reads);
  return plan;
}

std::vector<AskedPart> parts_of_plan(const LoadNeeds& needs,
                                     std::span<const std::vector<AskedBox>> asked,
                                     const GroupPlan& plan) {
  std::map<const StoredTensor*, AskedTensor> tensors;
  for (std::uint32_t member = 0; member < asked.size(); ++member) {
    for (std::uint32_t i = 0; i < asked[member].size(); ++i) {
      const AskedBox& one = asked[member][i];
      AskedTensor& tensor =
          tensors.try_emplace(&needs.catalog->tensors[one.tensor], one.box.axes()).first->second;
      tensor.boxes.push_back({one.box, member, {}, {}});
      tensor.numbers.push_back(i);
    }
  }
  const auto tensor_of = [&](const GroupRead& read) -> AskedTensor& {
    return tensors.find(needs.tensors[read.tensor].stored)->second;
  };
  const auto box_of = [&](const GroupRead& read) {
    return needs.tensors[read.tensor].stored->chunks.box(read.chunk);
  };
  for (auto& [stored, tensor] : tensors) tensor.index.emplace(tensor.boxes);
  for (const GroupRead& read : plan.reads) {
    tensor_of(read).read_itself.emplace(read.member, to_string(box_of(read)));
  }
  std::vector<AskedPart> parts;
  std::set<std::tuple<std::uint32_t, std::uint32_t, std::string>> done;  // several read one region
  std::vector<std::uint32_t> met;
  for (std::uint32_t i = 0; i < plan.reads.size(); ++i) {
    const GroupRead& read = plan.reads[i];
    const AskedTensor& tensor = tensor_of(read);
    const Box box = box_of(read);
    const std::string text = to_string(box);
    met.clear();
    tensor.index->find(box, met);
    std::ranges::sort(met);  // by member, and as each asked
    for (const std::uint32_t at : met) {
      const std::uint32_t member = tensor.boxes.file(at);
      if (member != read.member && tensor.read_itself.contains({member, text})) continue;
      const std::uint32_t number = tensor.numbers[at];
      if (!done.emplace(member, number, text).second) continue;
      if (const auto common = intersect(box, tensor.boxes.box(at))) {
        parts.push_back({i, member, number, *common});
      }
    }
  }
  return parts;
}

}  // namespace shardwright

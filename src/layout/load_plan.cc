// SPDX-License-Identifier: Apache-2.0
#include "layout/load_plan.h"

#include <algorithm>
#include <utility>

#include "layout/group_plan.h"

namespace shardwright {
namespace {

void append(const LoadNeeds& needs, std::uint32_t group, const GroupPlan& part, LoadPlan& plan) {
  const auto rank_of = [&](std::uint32_t member) {
    return static_cast<std::uint32_t>(needs.ranks.rank_of(group, member));
  };
  for (const GroupRead& read : part.reads) {
    plan.reads.push_back({rank_of(read.member), read.tensor, read.chunk});
  }
  for (std::uint32_t member = 0; member < part.members.size(); ++member) {
    plan.ranks[rank_of(member)] = part.members[member];
  }
}

}  // namespace

std::string_view to_string(LoadRule rule) {
  switch (rule) {
    case LoadRule::kStock:
      return "stock";
    case LoadRule::kPerName:
      return "per_name";
    case LoadRule::kPerChunk:
      return "per_chunk";
  }
  return {};
}

LoadCost cost_of(std::span<const RankLoad> ranks, const BytePrice& price) {
  LoadCost cost;
  for (const RankLoad& rank : ranks) {
    cost.heaviest_bytes =
        std::max(cost.heaviest_bytes, rank.bytes * price.read + rank.sent_bytes * price.sent);
    cost.foreign_opens += rank.foreign_opens;
    cost.foreign_bytes += rank.foreign_bytes;
  }
  return cost;
}

std::array<LoadPlan, kLoadRules.size()> plan_loads(const LoadNeeds& needs) {
  std::array<LoadPlan, kLoadRules.size()> plans;
  std::size_t world_size = 0;
  for (std::uint32_t group = 0; group < needs.groups.size(); ++group) {
    world_size += needs.ranks.members(group);
  }
  for (LoadPlan& plan : plans) plan.ranks.resize(world_size);
  auto& [stock, per_name, per_chunk] = plans;
  bool keeps_own = true;
  for (std::uint32_t group = 0; group < needs.groups.size(); ++group) {
    const GroupPlan shared = plan_stock(needs, group);
    append(needs, group, shared, stock);
    append(needs, group, plan_per_name(needs, group), per_name);
    const GroupPlan own = plan_per_chunk(needs, group, shared);
    append(needs, group, own, per_chunk);
    keeps_own = keeps_own && own.keeps_own;
  }
  // Where the job reads back its own files, nothing is gained by moving chunks about.
  if (!keeps_own && per_name.cost() < per_chunk.cost()) per_chunk = per_name;
  return plans;
}

}  // namespace shardwright

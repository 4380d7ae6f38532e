// SPDX-License-Identifier: Apache-2.0
#include "layout/name_placement.h"

#include <algorithm>

namespace shardwright {
namespace {

MeshPlacement shard_or_replicate(int axis) {
  return axis < 0 ? MeshPlacement::replicate() : MeshPlacement::shard(axis);
}

}  // namespace

bool NamePattern::matches(std::string_view name) const {
  const auto has = [&](const std::string& part) { return name.find(part) != name.npos; };
  return name.starts_with(starts_with) && std::ranges::all_of(contains, has) &&
         std::ranges::none_of(without, has) && (any_of.empty() || std::ranges::any_of(any_of, has));
}

const PlacementRule* PlacementRules::find(std::string_view name) const {
  const bool expert = is_expert(name);
  const auto found = std::ranges::find_if(rules, [&](const PlacementRule& rule) {
    return rule.expert == expert && rule.pattern.matches(name);
  });
  return found == rules.end() ? nullptr : &*found;
}

MeshPlacements PlacementRules::placements_of(std::string_view name) const {
  MeshPlacements placements(4);
  const PlacementRule* rule = find(name);
  if (rule == nullptr) return placements;
  if (rule->expert) {
    placements[2] = shard_or_replicate(rule->expert_axis);
    placements[3] = shard_or_replicate(rule->expert_tensor_axis);
  } else {
    placements[3] = shard_or_replicate(rule->tensor_axis);
  }
  return placements;
}

}  // namespace shardwright

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "layout/dtensor_placement.h"

namespace shardwright {

/// Parts that a parameter's name must have or must not have. Empty lists ask for nothing.
struct NamePattern {
  std::vector<std::string> contains;  ///< all of them
  std::vector<std::string> any_of;    ///< at least one
  std::vector<std::string> without;   ///< none
  std::string starts_with;

  [[nodiscard]] bool matches(std::string_view name) const;
};

/// What a family's training code says of the parameters that a pattern matches: the tensor axis
/// that TP (of an expert: EP, ETP) shards, or -1.
struct PlacementRule {
  NamePattern pattern;
  bool expert = false;  ///< the rule is for routed experts, which live on the expert mesh
  int tensor_axis = -1;
  int expert_axis = -1;
  int expert_tensor_axis = -1;
};

/// A family's rules in order: the first that matches wins, so a specific one (`hc_head.`) stands
/// before the generic one that would match too (`head`). Names that no rule matches are replicated.
struct PlacementRules {
  std::string family;
  NamePattern experts;  ///< which names are routed experts'
  std::vector<PlacementRule> rules;

  [[nodiscard]] bool is_expert(std::string_view name) const { return experts.matches(name); }
  /// The rule of a name, or null.
  [[nodiscard]] const PlacementRule* find(std::string_view name) const;
  /// Placements on the mesh [PP, DP, CP, TP], for experts on [PP, EDP, EP, ETP].
  [[nodiscard]] MeshPlacements placements_of(std::string_view name) const;
};

}  // namespace shardwright

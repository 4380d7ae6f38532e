// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "layout/component.h"

namespace shardwright {

/// Which ranks of a run each component of a MIMO model has. The ranges tile [0, world).
struct ComponentLayout {
  std::vector<Component> components;  ///< in the order in which they were given
  std::int64_t world = 0;

  [[nodiscard]] const Component* find(std::string_view name) const;
};

/// Solves what the caller left out. Offsets that are given are kept. The ranks that components of a
/// known size leave go to the others in equal shares where that fits, else in the one way that
/// fits; components without an offset take the free ranks in the order given, or in the first
/// order that leaves no gap. Without `world` an absent data-parallel size is 1.
///
/// A layout fits if a component `language` is there, sizes are positive, TP·CP·DP is a multiple of
/// ETP·EP, only `language` has experts, TP is a power of two, and of two DP sizes one divides the
/// other. Errors: kComponentLayout with the component and what to change; kLimit beyond 2^20 ranks.
[[nodiscard]] Result<ComponentLayout> solve_component_layout(std::span<const ComponentSpec> specs,
                                                             std::optional<std::int64_t> world);

}  // namespace shardwright

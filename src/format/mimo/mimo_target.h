// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <vector>

#include "format/target_format.h"
#include "format/torch_dist/torch_dist_target.h"

namespace shardwright {

/// torch_dist of a MIMO model: each component on ranks of its own.
[[nodiscard]] const Target& mimo_target();

/// Whether each component that the caller gave is one of the family's. Errors: kNoFamily for a
/// family without routes, kUsage with the component.
[[nodiscard]] Status check_components(const std::string& family,
                                      std::span<const ComponentRoute> routes,
                                      const ComponentLayout& layout);

/// Whether the components that the caller gave are those that have tensors, both ways: a model may
/// lack a tower that others of its family have. Error: kUsage with the component.
[[nodiscard]] Status check_component_tensors(const std::string& family, const TargetParts& parts);

/// Each component with everything solved. REQUIRES: check_components.
[[nodiscard]] std::vector<ComponentRanks> ranks_of_components(
    std::span<const ComponentRoute> routes, const ComponentLayout& layout);

/// Each component on its own ranks and under its route's path, the states of its optimizer where
/// their tensors are and under `mimo.<component>.`. What no route leads to (`hf_extra.*`) goes with
/// the language model. Error: kUnmatchedTarget for a component that the layout lacks,
/// kNotDivisible.
[[nodiscard]] Result<PlacedParts> place_components(const TargetParts& parts);

}  // namespace shardwright

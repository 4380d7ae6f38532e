// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "dcp/torch_dist_layout.h"
#include "format/target_format.h"
#include "layout/placement.h"

namespace shardwright {

[[nodiscard]] const Target& torch_dist_target();

/// What a torch_dist directory calls each tensor and opaque entry of a target, and which ranks
/// write them: parallel to TargetParts::tensors, and copied_objects before new_objects.
struct PlacedParts {
  std::vector<TorchDistTensor> tensors;
  std::vector<TorchDistObject> objects;
};

/// Every entry under its own name, on the ranks of one model.
[[nodiscard]] Result<PlacedParts> place_parts(const TargetParts& parts, const Placement& placement);

/// Whether ranks of a run hold a tensor of that name: what only Hugging Face stores, and states of
/// an optimizer that belong to no tensor, are nobody's.
[[nodiscard]] bool is_held_by_ranks(std::string_view name);

/// Makes one tensor for each tensor rank of what all of them hold alike: the parts have more
/// tensors then, and `placed` with them. Returns the number of tensors that became several.
std::size_t expand_replicas(const Placement& placement, TargetParts& parts, PlacedParts& placed);

/// Lays a torch_dist directory out, whatever ranks its parts are on. What was made of the tensors,
/// objects and files moves to the plan.
[[nodiscard]] Status plan_torch_dist(TargetParts& parts, PlacedParts placed, Plan& plan);

}  // namespace shardwright

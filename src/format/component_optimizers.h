// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <vector>

#include "format/target_parts.h"
#include "model/component_route.h"
#include "shardwright/catalog.h"
#include "shardwright/checkpoint.h"
#include "shardwright/convert_request.h"

namespace shardwright {

/// kOptimizerUnsupported for a MIMO source whose states are in buckets, which are cut for the ranks
/// that saved them.
[[nodiscard]] Status check_component_states(const Catalog& source);

/// Makes one optimizer of those that a MIMO source has for its components: what they say of
/// themselves goes to the common state. The names of the states stay; to_standard_names gives them
/// new ones. Does nothing where there are no states. Errors: kOptimizerUnsupported for states of
/// another kind than a distributed optimizer's or without parameter groups, kOptimizerMismatch
/// where components disagree.
[[nodiscard]] Status join_optimizers(Checkpoint& source, std::vector<std::string>& notes);

/// The reverse, for a MIMO target with these components: `parts` has states and the common state of
/// one optimizer. Errors: the same.
[[nodiscard]] Status share_optimizer(std::span<const ComponentRoute> routes, TargetParts& parts,
                                     std::vector<std::string>& notes);

}  // namespace shardwright

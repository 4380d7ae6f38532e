// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "codec/pickle_value.h"
#include "io/source_files.h"
#include "layout/state_sharding.h"
#include "shardwright/catalog.h"

namespace shardwright {

/// The dict by which a common state describes an optimizer whose states are named like the model's
/// tensors; `inner` has its `param_groups`.
[[nodiscard]] pickle::Value reshardable_optimizer(pickle::Document& document, pickle::Value inner);

/// Says of a common state that its optimizer's states are named like the model's tensors. REQUIRES:
/// it has content_metadata.
void say_reshardable(pickle::Document& document, pickle::Value state);

/// How a common state says that they were saved.
[[nodiscard]] StateSharding sharding_of(pickle::Value state);

/// A common state whose optimizer is described as `fully_reshardable`, the kind whose states are
/// named like the model's tensors: with the parameter groups that a distributed optimizer's own
/// entries in `catalog` hold, where there are such. `numbered_layers` says how entries are named
/// where the state does not. Errors: kStateUnreadable, those of open_object.
[[nodiscard]] Result<std::string> make_reshardable(const std::string& common_state,
                                                   const Catalog& catalog, SourceFiles& files,
                                                   bool numbered_layers);

}  // namespace shardwright

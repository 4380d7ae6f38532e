// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "plan/wrong_states.h"
#include "shardwright/checkpoint.h"

namespace shardwright {

/// Whether the states of a checkpoint are called after tensors as Megatron's torch_dist calls them,
/// without any step in between.
[[nodiscard]] bool has_ordinary_states(const Checkpoint& checkpoint, const Catalog& catalog);

/// What is wrong with optimizer states under the names under which they are stored. States in flat
/// buffers are not looked at. Errors: those of ModelForm::keeps_two_moments.
[[nodiscard]] Result<StateFindings> find_wrong_stored_states(const Checkpoint& checkpoint,
                                                             const Catalog& catalog);

}  // namespace shardwright

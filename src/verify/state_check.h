// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "shardwright/verify.h"

namespace shardwright {

/// Whether the optimizer states of a checkpoint are those of its weights, all of them: `named` are
/// its tensors with Megatron's names and shapes.
void check_named_states(const Catalog& named, const Checkpoint& checkpoint, VerifyReport& report);

/// The same of states under any trainer's names. Errors: those of find_wrong_stored_states.
[[nodiscard]] Status check_trainer_states(const Checkpoint& checkpoint, VerifyReport& report);

}  // namespace shardwright

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "shardwright/checkpoint.h"

namespace shardwright {

/// Reads Megatron-Core's common.pt, or the entry that newer ones keep in its place, and takes the
/// run's arguments from it; does nothing where there is neither. REQUIRES: the catalog is there.
/// Errors: those of reading and of CommonState::read; kLimit.
[[nodiscard]] Status read_common_state(Checkpoint& checkpoint);

}  // namespace shardwright

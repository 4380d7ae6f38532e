// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "shardwright/checkpoint.h"

namespace shardwright {

/// Reads what torch.distributed.checkpoint stores, whichever software called it: the catalog out of
/// `.metadata`, the state and the arguments of a Megatron run, and what lies beside. Errors:
/// kShortRead for entries beyond their files' ends, and those of reading.
[[nodiscard]] Status read_dcp(Checkpoint& checkpoint, Defects& defects);

}  // namespace shardwright

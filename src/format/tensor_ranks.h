// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "dcp/named_replicas.h"
#include "shardwright/checkpoint.h"

namespace shardwright {

/// How many tensor ranks the run had, by its arguments or run_config.yaml; nothing of a MIMO model,
/// whose components have sizes of their own.
[[nodiscard]] TensorRanks tensor_ranks_of(const Checkpoint& checkpoint);

}  // namespace shardwright

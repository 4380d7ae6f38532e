// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "plan/wrong_states.h"
#include "shardwright/checkpoint.h"

namespace shardwright {

/// What the run that wrote a checkpoint says of its optimizer. In bfloat16 and float16 Megatron
/// trains master weights, which the states of other formats are then held to as well; where the
/// weights of the format are the optimizer's own (Megatron-FSDP), there are none beside them.
/// Source: get_megatron_optimizer in megatron/core/optimizer/__init__.py.
[[nodiscard]] RecordedOptimizer recorded_optimizer(const Checkpoint& checkpoint);

}  // namespace shardwright

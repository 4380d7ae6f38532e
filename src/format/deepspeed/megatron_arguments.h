// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/arguments.h"

namespace shardwright {

/// Says what Megatron-DeepSpeed's arguments mean in Megatron-Core's names: `num_key_value_heads`,
/// `rope_theta`, `use_rotary_position_embeddings`, `normalization` in small letters, and
/// `num_experts` as a list, in which one expert means none. What has Megatron-Core's name already
/// stays. Source: megatron/arguments.py of Megatron-DeepSpeed.
void take_megatron_deepspeed_arguments(Arguments& arguments);

}  // namespace shardwright

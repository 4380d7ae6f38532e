// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "format/target_format.h"

namespace shardwright {

/// Megatron's `mp_rank_*` folders: a torch.save file for each rank, a tensor for each layer.
[[nodiscard]] const Target& legacy_target();

}  // namespace shardwright

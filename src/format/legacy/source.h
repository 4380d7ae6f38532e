// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "format/source_format.h"

namespace shardwright {

/// Megatron's `mp_rank_*` folders, a torch.save file for each rank.
[[nodiscard]] const SourceFormat& legacy_source();

}  // namespace shardwright

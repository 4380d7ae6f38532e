// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "format/source_format.h"

namespace shardwright {

/// What Megatron-Core saves: torch.distributed.checkpoint and a metadata.json that names the
/// backend.
[[nodiscard]] const SourceFormat& torch_dist_source();

}  // namespace shardwright

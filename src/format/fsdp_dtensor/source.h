// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "format/source_format.h"

namespace shardwright {

/// Whether a checkpoint is Megatron-FSDP's (`fsdp_dtensor`).
[[nodiscard]] bool is_fsdp(const Checkpoint& checkpoint);

/// What Megatron-FSDP saves: torch.distributed.checkpoint with names of its own. metadata.json may
/// say so, else the names do.
[[nodiscard]] const SourceFormat& fsdp_dtensor_source();

}  // namespace shardwright

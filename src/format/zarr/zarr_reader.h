// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "shardwright/checkpoint.h"

namespace shardwright {

/// Reads what Megatron-Core's zarr backend saved in the checkpoint's directory: a folder for each
/// tensor, and one for each object with a file for each of its shards; common.pt and what lies
/// beside. Errors: those of parse_zarray and of reading; kHole for chunks that are missing,
/// kShortRead for those that are cut. Source: ZarrSaveShardedStrategy in
/// megatron/core/dist_checkpointing/strategies/zarr.py.
[[nodiscard]] Status read_zarr(Checkpoint& checkpoint, Defects& defects);

}  // namespace shardwright

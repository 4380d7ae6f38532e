// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "layout/legacy_evidence.h"
#include "layout/shard_contents.h"

namespace shardwright {

/// What the virtual stages of one rank hold.
struct StageChunks {
  std::int64_t stage = 0;
  std::vector<ShardContents> chunks;
};

/// In which order layers go through `stages` pipeline stages. The embedding, the final norm and the
/// output layer tell where they lie; where no rank shows them, the run's schedule does.
[[nodiscard]] ChunkOrder chunk_order(const RecordedRun& run, std::int64_t stages,
                                     std::span<const StageChunks> ranks);

}  // namespace shardwright

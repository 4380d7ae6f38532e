// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>

#include "format/legacy/replica_bytes.h"
#include "layout/legacy_evidence.h"

namespace shardwright {

/// What was read, and what it says.
struct PaddingRows {
  PaddingPolicy policy = PaddingPolicy::kUnread;
  std::uint64_t bytes = 0;
};

/// Compares the last row of the word embeddings with zeros and with the last row of the vocabulary.
/// `shards`: the files that hold the embedding, by tensor rank. kUnread where there is no padding.
/// Errors: those of reading; kShapeMismatch where the shards are no vocabulary's.
[[nodiscard]] Result<PaddingRows> read_padding_rows(const Directory& directory,
                                                    std::span<const RankFile> shards,
                                                    std::int64_t vocabulary);

}  // namespace shardwright

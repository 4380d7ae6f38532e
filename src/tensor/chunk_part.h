// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "shardwright/catalog.h"

namespace shardwright {

/// The numbers of all axes with that of one more in front. REQUIRES: fewer than kMaxAxes.
[[nodiscard]] Dims with_first(const Dims& dims, std::int64_t first);

/// The part of a stored chunk that `box` takes of it: the same bytes, fewer of them.
/// REQUIRES: a chunk of Encoding::kRaw that contains `box`, which has elements.
[[nodiscard]] Chunk part_of(const Chunk& chunk, const Box& box, int element_bytes);

/// The box with one more axis in front, on which it has place `index`. REQUIRES: fewer than
/// kMaxAxes axes.
[[nodiscard]] Box lifted(const Box& box, std::int64_t index);

/// The chunk with one more axis in front, on which it has place `index`. REQUIRES: fewer than
/// kMaxAxes axes.
[[nodiscard]] Chunk lifted(Chunk chunk, std::int64_t index);

/// Appends to `target` what of `source` lies in `piece`, moved so that the piece's origin comes to
/// lie at `origin`. REQUIRES: Encoding::kRaw, the same axes.
void append_moved(const StoredTensor& source, const Box& piece, const Dims& origin,
                  ChunkList& target);

}  // namespace shardwright

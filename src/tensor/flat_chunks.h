// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "shardwright/catalog.h"

namespace shardwright {

/// A box, and which element of a row-major run lies at its origin.
struct FlatBox {
  Box box;
  std::int64_t first = 0;
};

/// Elements [from, to) of a tensor laid out row-major, as boxes of it: at most two for each axis
/// and one more. REQUIRES: 0 <= from <= to <= elements of `shape`.
[[nodiscard]] std::vector<FlatBox> split_flat_range(const Dims& shape, std::int64_t from,
                                                    std::int64_t to);

/// Where elements [from, to) of a box lie in a file: one after the other.
struct FlatPiece {
  std::int64_t from = 0;
  std::int64_t to = 0;
  std::uint32_t file = 0;
  std::uint64_t offset = 0;  ///< of element `from`, in bytes
};

/// Adds a piece of `box` to a tensor's chunks.
void append_flat_piece(const Box& box, const FlatPiece& piece, int element_bytes,
                       ChunkList& chunks);

}  // namespace shardwright

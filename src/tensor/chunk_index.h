// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "shardwright/catalog.h"

namespace shardwright {

/// Finds the chunks of one tensor that meet a box without looking at all of them: chunks are sorted
/// by origin, so each axis narrows the candidates by binary search. Empty chunks never meet
/// anything. Borrows the ChunkList; safe for concurrent use once built.
class ChunkIndex {
 public:
  explicit ChunkIndex(const ChunkList& chunks);

  /// Appends the index of every chunk whose box meets `box`, in order of origin.
  void find(const Box& box, std::vector<std::uint32_t>& found) const;

 private:
  void find_from(const Box& box, int axis, std::size_t begin, std::size_t end,
                 std::vector<std::uint32_t>& found) const;

  const ChunkList* chunks_;
  std::vector<std::uint32_t> order_;  // non-empty chunks by origin
  Dims longest_;                      // per axis, the longest chunk: how far back to look
};

}  // namespace shardwright

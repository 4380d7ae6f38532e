// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "shardwright/plan.h"

namespace shardwright {

/// Cuts a tensor into tiles of at most `tile_bytes` that are contiguous in row-major order: a range
/// of one axis under fixed leading indices, all of the axes behind it. Such a tile meets every
/// chunk in one contiguous run of that chunk. Where several rows are made at once, tiles begin at
/// multiples of so many as far as that many fit.
class TileGrid {
 public:
  /// `recipe`: what makes the tensor, where it matters how many rows are made at once.
  TileGrid(const Dims& shape, int element_bytes, std::int64_t tile_bytes,
           const TensorRecipe* recipe = nullptr);

  /// 0 for tensors without elements, which need no work.
  [[nodiscard]] std::int64_t count() const { return count_; }
  [[nodiscard]] Box tile(std::int64_t ordinal) const;

 private:
  Dims shape_;
  int axis_ = 0;               // the axis that is cut
  std::int64_t step_ = 1;      // its extent per tile
  std::int64_t per_lead_ = 1;  // tiles under one leading index
  std::int64_t count_ = 0;
};

}  // namespace shardwright

// SPDX-License-Identifier: Apache-2.0
#include "layout/merged_shards.h"

namespace shardwright {
namespace {

// Ranks whose pieces lie one after another on axis 0.
std::int64_t row_blocks(const MergedSizes& sizes, int inner_axis) {
  return sizes.fsdp * sizes.outer * (inner_axis == 0 ? sizes.inner : 1);
}

}  // namespace

bool divides_evenly(const Dims& stored, const MergedSizes& sizes, int inner_axis) {
  if (sizes.fsdp < 1 || sizes.outer < 1 || sizes.inner < 1) return false;
  if (inner_axis >= stored.size()) return false;
  return stored[0] > 0 && stored[0] % row_blocks(sizes, inner_axis) == 0 &&
         (inner_axis == 0 || stored[inner_axis] % sizes.inner == 0);
}

Dims logical_shape(const Dims& stored, const MergedSizes& sizes) {
  Dims shape = stored;
  shape[0] /= sizes.outer;
  return shape;
}

std::vector<MergedPiece> merged_pieces(const Dims& stored, const MergedSizes& sizes,
                                       int inner_axis) {
  const std::int64_t inner = inner_axis == 0 ? sizes.inner : 1;
  const std::int64_t rows = stored[0] / row_blocks(sizes, inner_axis);
  std::vector<MergedPiece> pieces;
  Box box = Box::whole(stored);
  box.shape[0] = rows;
  for (std::int64_t f = 0; f < sizes.fsdp; ++f) {
    for (std::int64_t o = 0; o < sizes.outer; ++o) {
      for (std::int64_t i = 0; i < inner; ++i) {
        MergedPiece piece{o, box, box};
        piece.stored.origin[0] = ((f * sizes.outer + o) * inner + i) * rows;
        piece.logical.origin[0] = (i * sizes.fsdp + f) * rows;
        pieces.push_back(piece);
      }
    }
  }
  return pieces;
}

}  // namespace shardwright

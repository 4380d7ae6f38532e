// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "shardwright/plan.h"

namespace shardwright {

/// One of the two matrices that a product is made of, as a piece needs it: element (t, k) lies
/// t * stride + k * rank_stride bytes behind `offset`, t counted along the target's axis `axis`
/// from the piece's origin.
struct PieceFactor {
  std::uint32_t file = 0;  ///< index into Plan::source.files
  std::uint64_t offset = 0;
  DType dtype = DType::kF32;
  int axis = -1;  ///< of the target; -1: the piece has one coordinate only
  std::int64_t stride = 0;
  std::int64_t rank_stride = 0;
  std::int64_t each_stride = 0;  ///< to the next matrix, along PieceUpdate::each_axis
};

/// What is added to a piece.
struct PieceUpdate {
  PieceFactor out;
  std::optional<PieceFactor> in;  ///< absent: ones, and the rank is 1
  std::int64_t rank = 1;
  int each_axis = -1;  ///< of the target, which counts matrices; -1: the piece is of one
  float scale = 1.0F;
  const float* factors = nullptr;  ///< of the piece's origin; null: all are 1
  std::int64_t factor_step = 0;    ///< to the next along out.axis
};

/// The update of the piece whose first element lies at `first.origin` of the source. REQUIRES: a
/// checked plan.
[[nodiscard]] PieceUpdate update_of(const AdaptedSource& adapted, const Catalog& source,
                                    const TensorView& view, const Box& first);

}  // namespace shardwright

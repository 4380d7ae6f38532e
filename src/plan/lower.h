// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "plan/view_index.h"
#include "shardwright/plan.h"
#include "tensor/chunk_index.h"

namespace shardwright {

/// The scales of a quantised piece. The scale of an element of the piece is
/// sum over the target's axes a of ((first[a] + t[a] * step[a]) / block[a]) * stride[a] bytes
/// behind `offset`, t counted from the piece's origin.
struct PieceScales {
  std::uint32_t file = 0;  ///< index into Plan::source.files
  std::uint64_t offset = 0;
  DType dtype = DType::kF32;
  Dims first;
  Dims step;
  Dims block;
  Dims stride;
};

/// A region of a target tensor as strided bytes of one source file.
struct SourcePiece {
  Box box;                   ///< in the target tensor
  std::uint32_t file = 0;    ///< index into Plan::source.files
  std::uint64_t offset = 0;  ///< of the element at box.origin
  Dims strides;              ///< bytes per step along the target's axes
  DType dtype = DType::kU8;
  int per_byte = 1;  ///< 2: `offset` and `strides` count fp4 values, two to a byte
  std::optional<PieceScales> scales;
};

/// Turns recipes into byte ranges, a region at a time: a plan for a million chunks never holds a
/// million pieces. Borrows the plan. Safe for concurrent use.
class Lowering {
 public:
  explicit Lowering(const Plan& plan);

  /// Appends the pieces that fill `region` of target tensor `target`; where the recipe fills, parts
  /// of it may stay uncovered.
  void lower(std::size_t target, const Box& region, std::vector<SourcePiece>& pieces) const;

 private:
  void lower_view(const TensorView& view, const Box& region,
                  std::vector<SourcePiece>& pieces) const;

  const Plan* plan_;
  std::vector<const QuantisedSource*> quantised_;     // by source tensor; null for plain ones
  std::vector<std::unique_ptr<ChunkIndex>> indexes_;  // of the source tensors that are read
  std::vector<ViewIndex> views_;                      // of each recipe
};

}  // namespace shardwright

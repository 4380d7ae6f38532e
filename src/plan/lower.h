// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "plan/piece_update.h"
#include "plan/view_index.h"
#include "shardwright/plan.h"
#include "tensor/chunk_index.h"

namespace shardwright {

/// Which elements of a quantised tensor a piece is: what belongs to them follows from their
/// coordinates. Borrows the plan.
struct QuantisedPiece {
  const QuantisedSource* source = nullptr;
  const Catalog* catalog = nullptr;
  Dims first;  ///< coordinates of the piece's first element
  Dims axis;   ///< per target axis: the one of the values that it steps along, or -1
  Dims step;   ///< per target axis: elements per step
};

/// A region of a target tensor as strided bytes of one source file.
struct SourcePiece {
  Box box;                   ///< in the target tensor
  std::uint32_t file = 0;    ///< index into Plan::source.files
  std::uint64_t offset = 0;  ///< of the element at box.origin, or of the first in its word
  Dims strides;              ///< bytes per step along the target's axes
  DType dtype = DType::kU8;
  int per_byte = 1;  ///< more: `offset` and `strides` count values, so many to a byte
  std::optional<QuantisedPiece> quantised;
  std::optional<PieceUpdate> update;
  const WeightedSource* weighted = nullptr;  ///< of a sum: the term that it belongs to
};

/// Turns recipes into byte ranges, a region at a time: a plan for a million chunks never holds a
/// million pieces. Borrows the plan. Safe for concurrent use.
class Lowering {
 public:
  explicit Lowering(const Plan& plan);

  /// Appends the pieces that fill `region` of target tensor `target`; where the recipe fills, parts
  /// of it may stay uncovered.
  void lower(std::size_t target, const Box& region, std::vector<SourcePiece>& pieces) const;

  /// The term of sums that a source tensor is, or null.
  [[nodiscard]] const WeightedSource* weighted(std::uint32_t source) const {
    return weighted_[source];
  }

 private:
  void lower_view(const TensorView& view, const Box& region,
                  std::vector<SourcePiece>& pieces) const;

  const Plan* plan_;
  std::vector<const QuantisedSource*> quantised_;     // by source tensor; null for plain ones
  std::vector<const AdaptedSource*> adapted_;         // likewise
  std::vector<const WeightedSource*> weighted_;       // likewise
  std::vector<std::unique_ptr<ChunkIndex>> indexes_;  // of the source tensors that are read
  std::vector<ViewIndex> views_;                      // of each recipe
};

}  // namespace shardwright

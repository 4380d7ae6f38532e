// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "shardwright/plan.h"
#include "tensor/chunk_index.h"

namespace shardwright {

/// A region of a target tensor as strided bytes of one source file.
struct SourcePiece {
  Box box;                   ///< in the target tensor
  std::uint32_t file = 0;    ///< index into Plan::source.files
  std::uint64_t offset = 0;  ///< of the element at box.origin
  Dims strides;              ///< bytes per step along the target's axes
  DType dtype = DType::kU8;
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
  std::vector<std::unique_ptr<ChunkIndex>> indexes_;       // of the source tensors that are read
  std::vector<std::unique_ptr<ChunkIndex>> view_indexes_;  // of recipes with many views
  std::vector<ChunkList> view_boxes_;
};

}  // namespace shardwright

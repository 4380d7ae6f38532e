// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "exec/gather.h"
#include "exec/sum_reader.h"
#include "io/source_files.h"
#include "plan/lower.h"
#include "shardwright/plan.h"

namespace shardwright {

/// A region of a tensor, row-major from `bytes` on.
[[nodiscard]] TilePart dense_part(const Box& box, std::byte* bytes, int element_bytes);

/// Makes regions of a plan's target tensors in memory, as its recipes say. One per thread. What is
/// quantised lies beside the scratch buffer (kMostMatrixBytes).
class TileReader {
 public:
  /// Borrows all. REQUIRES: scratch holds at least one element of any type with all
  /// that it is multiplied with (32 bytes).
  TileReader(const Plan& plan, const Lowering& lowering, SourceFiles& files,
             std::span<std::byte> scratch)
      : plan_(&plan), lowering_(&lowering), gather_(files, scratch), sums_(plan, lowering) {}

  /// Fills `parts`, which together are the region `tile` of target tensor `tensor` and lie in
  /// `memory`. REQUIRES: the recipe is proven (check_plan) or the tensors it reads are complete.
  [[nodiscard]] Status read(std::size_t tensor, const Box& tile, std::span<std::byte> memory,
                            std::span<const TilePart> parts);

 private:
  [[nodiscard]] Status read_matrix(std::size_t tensor, const Box& box, std::span<float> values);
  [[nodiscard]] Status gather(std::size_t tensor, const Box& box, DType dtype,
                              std::span<const TilePart> parts);

  const Plan* plan_;
  const Lowering* lowering_;
  Gather gather_;
  SumReader sums_;
  std::vector<SourcePiece> pieces_;
  std::vector<float> matrix_;  // of what is quantised
};

}  // namespace shardwright

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "exec/gather.h"
#include "plan/lower.h"
#include "shardwright/plan.h"

namespace shardwright {

/// Makes regions of target tensors that are sums of terms: block by block in float32, with one
/// rounding to the target's type. One per thread.
class SumReader {
 public:
  /// What a block of sums and one of values take together.
  static constexpr std::int64_t kMostBytes = std::int64_t{4} << 20;

  /// Borrows both.
  SumReader(const Plan& plan, const Lowering& lowering) : plan_(&plan), lowering_(&lowering) {}

  /// Whether the tensor is such a sum. REQUIRES: a checked plan.
  [[nodiscard]] bool is_sum(std::size_t tensor) const;

  /// Fills `parts`, which together are the region `tile` of the tensor, with what `gather` reads.
  /// Errors: kDtypeUnsupported naming two files, where terms that are not floating point are not
  /// alike; kOptimizerMismatch for lower halves that are none.
  [[nodiscard]] Status read(std::size_t tensor, const Box& tile, std::span<const TilePart> parts,
                            Gather& gather);

 private:
  [[nodiscard]] Status read_block(std::size_t tensor, const Box& block,
                                  std::span<const TilePart> parts, Gather& gather);
  [[nodiscard]] Status add(const SourcePiece& piece, const TilePart& sums, bool is_first,
                           Gather& gather);
  [[nodiscard]] Status join(const SourcePiece& piece, const TilePart& sums, Gather& gather);
  [[nodiscard]] Status compare(const SourcePiece& piece, const SourcePiece& first,
                               const TilePart& values, bool is_first, Gather& gather);

  void widen_values(std::size_t count);

  const Plan* plan_;
  const Lowering* lowering_;
  std::vector<SourcePiece> pieces_;
  std::vector<std::byte> sums_;    // of the block
  std::vector<std::byte> values_;  // of one piece of it
};

}  // namespace shardwright

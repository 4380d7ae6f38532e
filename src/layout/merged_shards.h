// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "shardwright/tensor.h"

namespace shardwright {

/// How many ranks share out a tensor, by what for. FSDP cut what each (outer, inner) rank held; the
/// checkpoint's tensor counts the pieces with FSDP's index first.
///
/// For experts `outer` is EP, which chooses the expert, and `inner` is ETP; a tensor `weight{j}`
/// packs expert j of every EP rank. For dense parameters `outer` is 1 and `inner` is TP.
struct MergedSizes {
  std::int64_t fsdp = 1;
  std::int64_t outer = 1;
  std::int64_t inner = 1;
};

/// A piece of a merged tensor and where it belongs.
struct MergedPiece {
  std::int64_t outer = 0;  ///< whose it is: the EP rank
  Box stored;              ///< in the merged tensor
  Box logical;             ///< in that outer rank's whole tensor
};

/// The pieces of a merged tensor of shape `stored`: FSDP cut axis 0, the inner ranks axis
/// `inner_axis`, 0 or 1. Row block ((fsdp·outer+o)·inner+i) of the merged tensor is row block
/// (i·fsdp+f) of outer rank o where the inner axis is 0; where it is 1, columns stay.
/// REQUIRES: sizes of at least 1 that divide the axes, see divides_evenly.
[[nodiscard]] std::vector<MergedPiece> merged_pieces(const Dims& stored, const MergedSizes& sizes,
                                                     int inner_axis);

/// Whether the sizes divide a merged tensor of this shape.
[[nodiscard]] bool divides_evenly(const Dims& stored, const MergedSizes& sizes, int inner_axis);

/// The shape of one outer rank's whole tensor.
[[nodiscard]] Dims logical_shape(const Dims& stored, const MergedSizes& sizes);

}  // namespace shardwright

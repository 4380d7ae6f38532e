// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "codec/torch_tensor.h"
#include "shardwright/tensor.h"

namespace shardwright {

/// What a rank has of a tensor: a plain tensor, and where it belongs.
struct RankPiece {
  pickle::Value local;
  Box box;
};

/// A tensor in the state dict that one rank of FSDP pickled.
struct RankTensor {
  Dims shape;  ///< of the whole
  std::vector<RankPiece> pieces;
};

/// Reads a tensor as FSDP2 (DTensor) and FSDP1 (ShardedTensor) put it into the state dict of a
/// rank; nothing of torch is run. Of a DTensor the mesh says at which coordinate the rank was.
/// Errors: kTorchArchive for a pickle that spells something else; kShapeMismatch for placements
/// that do not fit; kUnsupportedFormat for placements that are no shards (Partial).
[[nodiscard]] Result<RankTensor> read_rank_tensor(pickle::Value value);

}  // namespace shardwright

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "shardwright/error.h"
#include "shardwright/mapping.h"

namespace shardwright {

/// Proves that the blocks take every HF element and every Megatron element exactly once; the rows
/// of a vocabulary tensor beyond those of HF and constant tensors count as taken. This is what
/// makes a wrong mapping file fail instead of losing weights. Errors: kHole, kOverlap and
/// kOutOfBounds, with the tensor's name.
[[nodiscard]] Status check_blocks(const Correspondence& correspondence);

}  // namespace shardwright

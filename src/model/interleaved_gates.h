// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "model/config.h"
#include "shardwright/error.h"
#include "shardwright/mapping.h"

namespace shardwright {

/// How the rows of a gated fc1 alternate: so many of the gate, as many of the linear part, again of
/// the gate, in each tensor rank's part.
struct GateBlocks {
  std::int64_t rows = 0;  ///< of a block; 0: the gate first, then the linear part
  std::int64_t ranks = 1;
};

/// Of models whose fused kernels want it so (Megatron-Core, `moe_mlp_glu_interleave_size` and
/// `moe_shared_expert_glu_interleave_size`, transformer_config.py). It is experimental there: only
/// modules with grouped products look at it.
struct InterleavedGates {
  GateBlocks experts;
  GateBlocks shared_experts;

  [[nodiscard]] bool are_any() const { return experts.rows > 0 || shared_experts.rows > 0; }
};

/// What a run's arguments say. Error: kConfigMissing if a size is not a positive number.
[[nodiscard]] Result<InterleavedGates> interleaved_gates(const Arguments& args);

/// Moves the rows of the fc1 of experts to where `gates` has them, on Megatron's side; each block
/// of rows becomes a Block of its own. Error: kNotDivisible.
[[nodiscard]] Status interleave_gates(const InterleavedGates& gates,
                                      Correspondence& correspondence);

}  // namespace shardwright

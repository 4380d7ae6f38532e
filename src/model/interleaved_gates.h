// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

#include "model/config.h"
#include "shardwright/error.h"
#include "shardwright/mapping.h"
#include "shardwright/parallel.h"

namespace shardwright {

/// How the rows of a gated fc1 alternate: so many of the gate, as many of the linear part, again of
/// the gate, in each tensor rank's part.
struct GateBlocks {
  std::int64_t rows = 0;  ///< of a block; 0: the gate first, then the linear part
  std::int64_t ranks = 1;

  friend bool operator==(const GateBlocks& one, const GateBlocks& other) {
    return one.rows == other.rows && (one.rows == 0 || one.ranks == other.ranks);
  }
};

/// Of models whose fused kernels want it so (Megatron-Core, `moe_mlp_glu_interleave_size` and
/// `moe_shared_expert_glu_interleave_size`, transformer_config.py). It is experimental there: only
/// modules with grouped products look at it.
struct InterleavedGates {
  GateBlocks experts;
  GateBlocks shared_experts;

  [[nodiscard]] bool are_any() const { return experts.rows > 0 || shared_experts.rows > 0; }
  friend bool operator==(const InterleavedGates&, const InterleavedGates&) = default;
};

/// How a checkpoint has them. Megatron-LM stores all as the run has it; Megatron-Bridge loads
/// weights with the gate first (save_checkpoint, training/checkpointing.py), and nothing else.
struct StoredGates {
  InterleavedGates weights;
  InterleavedGates states;  ///< of optimizer states and adapters
};

/// Where a row of [gate, linear part] is stored, and how many from it on are stored behind that.
struct StoredRows {
  std::int64_t first = 0;
  std::int64_t count = 0;
};

/// What a run's arguments say. Error: kConfigMissing if a size is not a positive number.
[[nodiscard]] Result<InterleavedGates> interleaved_gates(const Arguments& args);

/// The same of a job of these sizes.
[[nodiscard]] InterleavedGates gates_on(const ParallelConfig& parallel, InterleavedGates gates);

/// Of the fc1 that a Megatron tensor is of, an adapter's or an optimizer state's included.
[[nodiscard]] GateBlocks blocks_of(const InterleavedGates& gates, std::string_view name);

/// Along which axis the rows of a weight or bias lie.
[[nodiscard]] int axis_of_rows(const TensorDesc& tensor);

/// Error: kNotDivisible where the rows of an fc1 are no whole blocks on each rank.
[[nodiscard]] Status check_blocks(const GateBlocks& blocks, const TensorDesc& tensor);

/// `gate_rows`: how many the gate has. REQUIRES: check_blocks().
[[nodiscard]] StoredRows stored_rows(const GateBlocks& blocks, std::int64_t gate_rows,
                                     std::int64_t row);

/// Moves the rows of the fc1 of experts to where `gates` has them, on Megatron's side; each block
/// of rows becomes a Block of its own. Error: kNotDivisible.
[[nodiscard]] Status interleave_gates(const InterleavedGates& gates,
                                      Correspondence& correspondence);

}  // namespace shardwright

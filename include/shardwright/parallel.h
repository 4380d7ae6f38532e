// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace shardwright {

/// Sizes of Megatron's parallel axes that decide where a tensor's pieces live. All are at least 1,
/// but for `encoder_tensor`.
struct ParallelConfig {
  std::int64_t tensor = 1;
  std::int64_t pipeline = 1;
  std::int64_t virtual_pipeline = 1;
  std::int64_t expert = 1;
  std::int64_t expert_tensor = 1;
  /// Ranks that share out each tensor of a multimodal model's parts that are not its language model
  /// (encoders, projections); rank t of `tensor` holds shard t mod E. 0: `tensor` of them.
  std::int64_t encoder_tensor = 0;
};

/// What a caller says of one module of a MIMO model. Absent sizes are 1; absent `data` and
/// `rank_offset` are solved from what the other components leave of the run.
struct ComponentSpec {
  std::string name;  ///< `language`, `images`: a component of the family's routes
  std::optional<std::int64_t> tensor;
  std::optional<std::int64_t> pipeline;
  std::optional<std::int64_t> data;
  std::optional<std::int64_t> context;
  std::optional<std::int64_t> expert;
  std::optional<std::int64_t> expert_tensor;
  std::optional<std::int64_t> rank_offset;
};

/// Which of Megatron-Core's two families of modules a checkpoint's entries are named for.
enum class ModuleSpec : std::uint8_t {
  kKeep,               ///< the source's own names; from HF: Transformer Engine's
  kTransformerEngine,  ///< norms fused into linears, an extra state for each
  kLocal,              ///< Megatron-Core's own modules
};

}  // namespace shardwright

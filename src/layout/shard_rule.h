// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

namespace shardwright {

/// How Megatron-Core shards one canonical tensor (a layer's own, without a stacking axis).
struct ShardRule {
  int axis = -1;            ///< the axis that (expert) tensor parallelism cuts, -1 if replicated
  bool in_two = false;      ///< a gated linear_fc1: [W;V], each half cut on its own
  int expert_axis = -1;     ///< the axis that counts experts, -1 for none
  bool is_expert = false;   ///< lives on the expert grid
  bool vocabulary = false;  ///< axis 0 counts vocabulary rows and may be padded
};

/// The rule for a tensor with `axes` axes of its own, from the end of its name: the sharding that
/// Megatron-Core's sharded_state_dict methods declare. Unknown names are replicated, which every
/// loader can read. `is_gated` matters for linear_fc1 only.
[[nodiscard]] ShardRule shard_rule(std::string_view name, int axes, bool is_gated);

/// Whether the name is a linear_fc1 of a gated MLP, given the last axis of its linear_fc2: gated
/// exactly if fc1 has twice as many rows as fc2 has columns. Args can be wrong, shapes cannot.
[[nodiscard]] constexpr bool is_gated(std::int64_t fc1_rows, std::int64_t fc2_columns) {
  return fc1_rows == 2 * fc2_columns;
}

/// Rows after padding: the next multiple of divisible_by × tensor (Megatron's
/// vocab_size_with_padding).
[[nodiscard]] std::int64_t padded_vocabulary(std::int64_t rows, std::int64_t divisible_by,
                                             std::int64_t tensor);

}  // namespace shardwright

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace shardwright {

/// A name under which some rank stored what other ranks hold too:
/// * `NAME.__tp_replica_1`: NAME as tensor rank 1 holds it (Megatron-LM PR 3392);
/// * `__shadow_3__NAME`: pieces of NAME that rank 3 keeps in a file of its own to load them from
///   there (Megatron-LM PRs 4628 and 5556, "replicate local");
/// * `__shadow_3__NAME.__tp_replica_1`: such pieces of tensor rank 1's copy.
/// States of the optimizer have such names as weights have: `optimizer.state.exp_avg.NAME...`.
struct ReplicaName {
  std::string_view tensor;              ///< NAME, a part of the parsed name
  std::optional<std::int64_t> replica;  ///< the tensor rank
  bool is_shadow = false;
};

/// Absent for any other name. Ranks are written as Python writes numbers: `_01` is none.
[[nodiscard]] std::optional<ReplicaName> parse_replica_name(std::string_view name);

/// `NAME.__tp_replica_RANK`, which parse_replica_name() takes apart.
[[nodiscard]] std::string replica_name(std::string_view tensor, std::int64_t replica);

/// Whether a name has the mark of such a name, well-formed or not, as an object's may have.
[[nodiscard]] bool has_replica_mark(std::string_view name);

}  // namespace shardwright

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "shardwright/verify.h"

namespace shardwright {

/// Some writers of torch_dist store what all tensor ranks hold alike once per rank, as
/// `decoder.final_layernorm.weight.__tp_replica_1`.
struct NamedReplica {
  std::string_view name;  ///< of the tensor itself
  std::int64_t rank = 0;
};
[[nodiscard]] std::optional<NamedReplica> parse_named_replica(std::string_view name);

/// Compares the replicas of one tensor with its first, bit by bit: one error (kReplicasDiffer,
/// kShapeMismatch) for each that differs, with the first differing index. The catalog is located;
/// tensors that are not whole are passed over. Error: those of reading.
[[nodiscard]] Result<std::vector<Error>> compare_named_replicas(const Checkpoint& checkpoint,
                                                                const ProofOptions& options);

}  // namespace shardwright

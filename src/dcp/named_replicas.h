// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "shardwright/catalog.h"
#include "shardwright/checkpoint.h"

namespace shardwright {

/// How many tensor ranks a run had, where that is known.
struct TensorRanks {
  std::optional<std::int64_t> all = std::nullopt;
  std::optional<std::int64_t> experts = std::nullopt;  ///< that share out tensors of experts
};

/// Makes one tensor of everything that is stored of it under names of replicas (see ReplicaName)
/// and under its own: it has its own name, the chunks of all, and StoredTensor::copies says whose
/// they are. Equal boxes are replicas, which are compared as any; different ones complement one
/// another, so that any copy serves where one or a piece of one is missing. What differs in dtype,
/// shape or encoding, or is cut in other pieces, stays as it is stored.
void fold_replicas(Catalog& catalog);

/// That every name of a replica was understood: no tensor or object has one any more, and none was
/// a copy of a rank that the run did not have. One error for each tensor, told to `defects`:
/// kReplicaKeys, with why.
[[nodiscard]] Status check_replica_names(const Catalog& catalog, const TensorRanks& ranks,
                                         Defects& defects);

/// What the user should know of replicas that have names: sentences.
[[nodiscard]] std::vector<std::string> describe_replicas(const Catalog& catalog,
                                                         const TensorRanks& ranks);

/// Whether there are tensors of which take_replica() could take a rank's copy.
[[nodiscard]] bool has_numbered_replicas(const Catalog& catalog);

/// Of every tensor that tensor ranks stored under names of their own, takes what rank `replica`
/// stored and forgets the rest, however it differs. A sentence says so. Error: kUsage where there
/// are no such tensors, or where one lacks that rank's copy.
[[nodiscard]] Result<std::string> take_replica(Catalog& catalog, std::int64_t replica);

/// The chunks of one of a tensor's copies, as a tensor of the name that the copy is stored under.
[[nodiscard]] StoredTensor tensor_of_copy(const StoredTensor& tensor, std::size_t copy);

}  // namespace shardwright

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "exec/jobs.h"
#include "io/source_files.h"
#include "shardwright/catalog.h"
#include "shardwright/checkpoint.h"
#include "shardwright/convert_request.h"

namespace shardwright {

/// What comparing replicas takes or took. (A chunk whose box another chunk has too is a replica.)
struct ReplicaReport {
  std::uint64_t compared = 0;  ///< chunks that are compared with another
  std::uint64_t bytes = 0;     ///< read of them, both sides

  void add(const ReplicaReport& other) {
    compared += other.compared;
    bytes += other.bytes;
  }
};

/// What check_replicas() will read where it finds no difference. Reads nothing.
[[nodiscard]] ReplicaReport cost_of_replicas(const Catalog& catalog, ReplicaCheck check);

/// That the names under which ranks stored replicas were understood, see check_replica_names();
/// `catalog` is what of the checkpoint is used.
[[nodiscard]] Status check_named_replicas(const Checkpoint& checkpoint, const Catalog& catalog,
                                          Defects& defects);

/// Compares chunks that claim the same box of a tensor: what the ranks of a legacy checkpoint hold
/// alike, and any replica elsewhere. Taking one of two that differ would be a guess. kSample reads
/// the first and last block of each, kNone nothing. Error: kReplicasDiffer with the tensor, the
/// first element that differs, both values and where they are stored, under which names; one for
/// each tensor, told to `defects`.
[[nodiscard]] Result<ReplicaReport> check_replicas(const Catalog& catalog, ReplicaCheck check,
                                                   SourceFiles& files, Defects& defects,
                                                   const Workers& workers = {});

}  // namespace shardwright

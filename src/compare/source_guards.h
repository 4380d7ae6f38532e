// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "compare/digest_file.h"
#include "compare/integrity_file.h"
#include "compare/replicas.h"
#include "compare/signature_file.h"
#include "exec/jobs.h"
#include "shardwright/checkpoint.h"

namespace shardwright {

struct SourceGuards {
  ReplicaCheck replicas = ReplicaCheck::kAll;
  /// Which state belongs to which parameter was derived, and their values prove it: the weights and
  /// the states under their names. Null where nothing was derived.
  const Catalog* derived = nullptr;
  Workers workers;
  Signer signer = {};
};

/// What the guards have looked at and found right.
struct GuardedSource {
  ReplicaReport replicas;
  ListedChecked integrity;     ///< by Megatron's integrity.json
  SignatureChecked signature;  ///< by model_signing's model.sig
  DigestsChecked digested;     ///< by the file of digests that `convert --digests` writes
  /// What hints at files that were copied over others, see check_files().
  std::vector<std::string> repeated_files;
};

/// Every check that reads a source's bytes before anything is written of them. This is the only
/// list: a conversion stops at the first defect, verify collects all, so that it never proves what
/// a conversion refuses. `catalog`: of the source, located, all of its tensors whole. Errors: those
/// of check_replicas, check_shards, check_files, check_zero_weights, check_master_weights,
/// check_digest_file, check_integrity_file and check_signature_file.
[[nodiscard]] Result<GuardedSource> check_source(const Checkpoint& checkpoint,
                                                 const Catalog& catalog, const SourceGuards& guards,
                                                 Defects& defects);

/// What of them is looked at in a checkpoint whose tensors are checked with those of another one:
/// its shards and digests. `catalog`: by the numbers of its own files. Returns
/// GuardedSource::repeated_files.
[[nodiscard]] Result<std::vector<std::string>> check_source_beside(const Checkpoint& checkpoint,
                                                                   const Catalog& catalog,
                                                                   const SourceGuards& guards,
                                                                   Defects& defects);

}  // namespace shardwright

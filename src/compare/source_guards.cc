// SPDX-License-Identifier: Apache-2.0
#include "compare/source_guards.h"

#include "compare/integrity_file.h"
#include "compare/master_weights.h"
#include "compare/repeated_files.h"
#include "compare/repeated_shards.h"
#include "compare/zero_weights.h"

namespace shardwright {

Result<GuardedSource> check_source(const Checkpoint& checkpoint, const Catalog& catalog,
                                   const SourceGuards& guards, Defects& defects) {
  SourceFiles& files = *checkpoint.files;
  // What is read of digests and shards counts for nobody.
  Workers untold = guards.workers;
  untold.on_progress = {};
  GuardedSource result;
  result.digested = SW_TRY(check_digest_file(checkpoint, untold, defects));
  result.integrity = SW_TRY(check_integrity_file(checkpoint, untold, defects));
  result.signature = SW_TRY(check_signature_file(checkpoint, guards.signer, untold, defects));
  result.replicas =
      SW_TRY(check_replicas(catalog, guards.replicas, files, defects, guards.workers));
  if (checkpoint.location.traits.is_of_ranks) {
    SW_TRY(check_shards(catalog, guards.replicas, files, defects, untold));
  }
  result.repeated_files =
      SW_TRY(check_files(checkpoint, catalog, guards.replicas, defects, untold));
  SW_TRY(check_zero_weights(checkpoint, catalog, guards.replicas, defects, untold));
  if (guards.derived != nullptr) {
    Workers after = guards.workers;
    if (after.on_progress) {
      after.on_progress = [&](std::uint64_t bytes) {
        guards.workers.on_progress(result.replicas.bytes + bytes);
      };
    }
    SW_TRY(check_master_weights(*guards.derived, files, defects, after));
  }
  return result;
}

Result<std::vector<std::string>> check_source_beside(const Checkpoint& checkpoint,
                                                     const Catalog& catalog,
                                                     const SourceGuards& guards, Defects& defects) {
  Workers untold = guards.workers;
  untold.on_progress = {};
  SW_TRY(check_digest_file(checkpoint, untold, defects));
  SW_TRY(check_integrity_file(checkpoint, untold, defects));
  SW_TRY(check_signature_file(checkpoint, guards.signer, untold, defects));
  if (checkpoint.location.traits.is_of_ranks) {
    SW_TRY(check_shards(catalog, guards.replicas, *checkpoint.files, defects, untold));
  }
  std::vector<std::string> repeated =
      SW_TRY(check_files(checkpoint, catalog, guards.replicas, defects, untold));
  SW_TRY(check_zero_weights(checkpoint, catalog, guards.replicas, defects, untold));
  return repeated;
}

}  // namespace shardwright

// SPDX-License-Identifier: Apache-2.0
#include "compare/source_guards.h"

#include "compare/integrity_file.h"
#include "compare/master_weights.h"
#include "compare/repeated_shards.h"

namespace shardwright {

Result<GuardedSource> check_source(const Checkpoint& checkpoint, const Catalog& catalog,
                                   const SourceGuards& guards, Defects& defects) {
  SourceFiles& files = *checkpoint.files;
  GuardedSource result;
  result.digests = SW_TRY(check_integrity_file(checkpoint, guards.threads, defects));
  result.replicas = SW_TRY(check_replicas(catalog, guards.replicas, files, defects));
  if (checkpoint.location.traits.is_of_ranks) {
    SW_TRY(check_shards(catalog, guards.replicas, files, defects));
  }
  if (guards.master_weights) {
    SW_TRY(check_master_weights(catalog, files, guards.threads, defects));
  }
  return result;
}

}  // namespace shardwright

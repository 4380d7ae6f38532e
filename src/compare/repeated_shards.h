// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "exec/jobs.h"
#include "io/source_files.h"
#include "shardwright/catalog.h"
#include "shardwright/checkpoint.h"
#include "shardwright/convert_request.h"

namespace shardwright {

/// Looks for tensors of a legacy checkpoint of which tensor-parallel ranks hold the same bytes,
/// though their names say that each holds its own part: all of them (somebody took replicas for
/// shards, and joining them would repeat the tensor TP times: finding L20), or those that are some
/// number apart (L25). Of shards that differ, as they
/// should, only the first block is read. Nothing is looked for with kNone. Error: kReplicasDiffer,
/// one for each tensor, told to `defects`.
[[nodiscard]] Status check_shards(const Catalog& catalog, ReplicaCheck check, SourceFiles& files,
                                  Defects& defects, const Workers& workers = {});

}  // namespace shardwright

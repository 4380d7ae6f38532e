// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "compare/listed_digests.h"
#include "exec/jobs.h"
#include "shardwright/checkpoint.h"

namespace shardwright {

/// Reads those among the files of a checkpoint's folder that a Hugging Face cache keeps under their
/// SHA-256 (`snapshots/<revision>/NAME` is a link to `blobs/<64 hex digits>`, the etag of the hub's
/// large files) and compares them with those names. What is wrong is told to `defects`:
/// kDigestMismatch with the file, those of reading.
[[nodiscard]] Result<ListedChecked> check_hub_digests(const Checkpoint& checkpoint,
                                                      const Workers& workers, Defects& defects);

}  // namespace shardwright

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <set>
#include <string>

#include "exec/jobs.h"
#include "shardwright/checkpoint.h"

namespace shardwright {

/// Files of a Hugging Face cache that are kept under their SHA-256 (`snapshots/<revision>/NAME` is
/// a link to `blobs/<64 hex digits>`, the etag of the hub's large files).
struct HubDigests {
  std::size_t right = 0;
  std::set<std::string, std::less<>> guarded;  ///< their names, right or not
};

/// Reads those among the files of a checkpoint's folder and compares them with their names.
/// What is wrong is told to `defects`: kDigestMismatch with the file,
/// those of reading.
[[nodiscard]] Result<HubDigests> check_hub_digests(const Checkpoint& checkpoint,
                                                   const Workers& workers, Defects& defects);

}  // namespace shardwright

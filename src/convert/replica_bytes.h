// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "layout/legacy_evidence.h"
#include "shardwright/storage.h"

namespace shardwright {

/// One rank's file, as a path below the directory, and the folder's name for messages.
struct RankFile {
  std::string folder;
  std::string path;
};

/// Compares one tensor of two ranks byte by byte. Errors: those of reading; kShapeMismatch where
/// the files do not hold it in one shape.
[[nodiscard]] Result<ReplicaVerdict> compare_replica(const Directory& directory,
                                                     const RankFile& first, const RankFile& second,
                                                     const std::string& tensor);

}  // namespace shardwright

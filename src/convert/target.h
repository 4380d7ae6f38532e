// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "plan/draft.h"
#include "shardwright/convert.h"

namespace shardwright {

/// A file of the output whose bytes are known, or an artifact to carry.
struct TargetFile {
  std::string path;
  std::string bytes;
};

/// Everything that a target needs besides its tensors.
struct TargetParts {
  std::vector<DraftTensor> tensors;
  std::vector<StoredObject> copied_objects;                      ///< of the source catalog
  std::vector<std::pair<std::string, std::string>> new_objects;  ///< name and bytes
  std::vector<TargetFile> files;
  std::vector<std::pair<std::string, StoredObject>> artifacts;  ///< path, and where it is now
  std::string folder;  ///< of the data within the output, with a trailing slash; may be empty
};

/// Lays a torch_dist target out and completes the plan's target side. `plan.source` is set.
[[nodiscard]] Status plan_torch_dist(const TargetParts& parts, const ParallelConfig& parallel,
                                     Plan& plan);

/// The same for safetensors files. `artifacts` and `files` lie beside them.
[[nodiscard]] Status plan_safetensors(const TargetParts& parts, std::uint64_t max_shard_bytes,
                                      Plan& plan);

}  // namespace shardwright

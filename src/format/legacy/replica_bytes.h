// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "layout/folder_groups.h"
#include "layout/legacy_evidence.h"
#include "shardwright/storage.h"

namespace shardwright {

/// One rank's file, as a path below the directory, and the folder's name for messages.
struct RankFile {
  std::string folder;
  std::string path;
  std::int64_t number = 0;  ///< of the rank, along the axis that is looked at
};

/// Compares one tensor of two ranks byte by byte. Errors: those of reading; kShapeMismatch where
/// the files do not hold it in one shape.
[[nodiscard]] Result<ReplicaVerdict> compare_replica(const Directory& directory,
                                                     const RankFile& first, const RankFile& second,
                                                     const std::string& tensor);

/// How the ranks' folders lie, and what they share.
struct RankLayout {
  std::span<const std::string> coordinates;  ///< what the folders' numbers are
  std::string_view data;  ///< the folder that holds them, relative to the directory
  TowerSizes towers;      ///< with tensor sizes of their own
};

struct RankComparison {
  std::vector<ReplicaVerdict> differing;
  std::vector<RepeatedShard> repeated;
  std::uint64_t bytes = 0;  ///< read
};

/// Compares everything that several ranks should hold alike: dense tensors along ep, and along tp
/// those that Megatron replicates and the shards of towers that repeat. Shards that are alike along
/// tp and should not be are noted too. Errors: those of reading.
[[nodiscard]] Result<RankComparison> compare_ranks(const Directory& directory,
                                                   std::span<const NumberedFolder> folders,
                                                   const RankLayout& layout);

}  // namespace shardwright

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "shardwright/storage.h"

namespace shardwright {

/// The files of a model-parallel rank in a DeepSpeed checkpoint's folder, by the data-parallel rank
/// that saved them.
struct ZeroFiles {
  std::map<std::int64_t, std::string> optimizer;
  std::map<std::int64_t, std::string> model;  ///< of ZeRO 3; of others one, as rank 0's
};

/// By model-parallel rank: pipeline stages, where the model is not cut. Errors: kZeroLayout for two
/// files of one rank, for ranks that are missing among those there and for a folder without a
/// model's file.
[[nodiscard]] Result<std::vector<ZeroFiles>> list_zero_files(
    std::span<const DirectoryEntry> entries);

}  // namespace shardwright

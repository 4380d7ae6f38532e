// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "shardwright/error.h"

namespace shardwright::cli {

/// What is said to the ranks of a job beside the command that they run.
struct RankFlags {
  std::chrono::milliseconds timeout{60'000};  ///< see SessionOptions::timeout
  /// A call of the file system that lasts longer is taken for hung.
  std::chrono::milliseconds io_timeout{600'000};
};

/// Takes `--rank-timeout SECONDS` and `--io-timeout SECONDS` out of `words`, wherever it stands.
/// Error: kUsage.
[[nodiscard]] Result<RankFlags> take_rank_flags(std::vector<std::string>& words);

}  // namespace shardwright::cli

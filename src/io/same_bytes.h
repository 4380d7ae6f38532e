// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "io/source_files.h"

namespace shardwright {

/// A place in a file where a run of bytes begins.
struct FilePlace {
  std::uint32_t file = 0;
  std::uint64_t offset = 0;
};

/// Reads `length` bytes in two places, a block at a time, and gives the first position at which
/// they differ; nullopt where they are the same.
[[nodiscard]] Result<std::optional<std::uint64_t>> first_difference(SourceFiles& files, FilePlace a,
                                                                    FilePlace b,
                                                                    std::uint64_t length);

}  // namespace shardwright

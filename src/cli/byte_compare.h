// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "shardwright/checkpoint.h"

namespace shardwright::cli {

struct ByteComparison {
  std::uint64_t tensors = 0;             ///< compared, equal or not
  std::uint64_t bytes = 0;               ///< read from each side
  std::vector<std::string> differences;  ///< one sentence each; empty: equal
};

/// Compares two checkpoints tensor by tensor: names, dtypes, shapes, and every byte as both files
/// hold it. Both must store each tensor whole (as safetensors files do). Errors: kUnsupportedFormat
/// for a tensor in pieces, and those of reading.
[[nodiscard]] Result<ByteComparison> compare_bytes(const Checkpoint& a, const Checkpoint& b);

}  // namespace shardwright::cli

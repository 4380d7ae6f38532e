// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string_view>

#include "shardwright/checkpoint.h"

namespace shardwright {

/// What Megatron writes with --verify-integrity (0.18 and newer): the SHA-256 of each file beside
/// it, `{"algorithm": "sha256", "files": {"common.pt": "…"}}`.
inline constexpr std::string_view kIntegrityFile = "integrity.json";

/// Reads the files that it names and compares their digests; returns how many are right, 0 where
/// there is no such file. `threads` files at a time. What is wrong is told to `defects`:
/// kDigestMismatch with the file (and the one whose digest it has, where files were swapped), those
/// of opening a file that is not there, kJsonCorrupt.
[[nodiscard]] Result<std::size_t> check_integrity_file(const Checkpoint& checkpoint, int threads,
                                                       Defects& defects);

}  // namespace shardwright

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "shardwright/error.h"

namespace shardwright::cli {

// What people write and read: sizes, counts, times. All pure.

/// `5GB` (powers of 1000) or `256MiB` (powers of 1024), also `100B` and bare bytes: a whole number
/// of at least 1. `flag` names the flag in the message. Error: kUsage.
[[nodiscard]] Result<std::uint64_t> parse_bytes(std::string_view flag, std::string_view text);

/// A whole number from 1 to `largest`. Error: kUsage.
[[nodiscard]] Result<std::int64_t> parse_count(std::string_view flag, std::string_view text,
                                               std::int64_t largest = 1'000'000'000);

/// `--threads`: a whole number from 1 to 4096. Error: kUsage.
[[nodiscard]] Result<int> parse_threads(std::string_view text);

/// `1.50 GB`, in powers of 1000 as disks are sold; below 1000: `999 bytes`.
[[nodiscard]] std::string format_bytes(std::uint64_t bytes);

/// `256 MiB`, for memory.
[[nodiscard]] std::string format_memory(std::uint64_t bytes);

/// `1,234,567`.
[[nodiscard]] std::string format_count(std::uint64_t count);

/// `3 files`, `1 file`.
[[nodiscard]] std::string format_count(std::uint64_t count, std::string_view noun);

/// `0.42 s`, `12 s`, `3m05s`, `2h10m`.
[[nodiscard]] std::string format_seconds(double seconds);

}  // namespace shardwright::cli

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace shardwright::cli {

// What people write and read: sizes, counts, times. All pure.

/// `5GB` (powers of 1000) or `256MiB` (powers of 1024), also `100B` and bare bytes: a whole number
/// of at least 1. Else nullopt.
[[nodiscard]] std::optional<std::uint64_t> parse_bytes(std::string_view text);

/// A whole number from 1 to `largest`, in decimal digits. Else nullopt.
[[nodiscard]] std::optional<std::int64_t> parse_count(std::string_view text, std::int64_t largest);

/// A rank's number, from 0 to 1048575. Else nullopt.
[[nodiscard]] std::optional<std::int64_t> parse_rank(std::string_view text);

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

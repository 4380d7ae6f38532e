// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace shardwright {

/// One way to compute a CRC-32, of which all give the same; arguments as those of crc32().
using Crc32Kernel = std::uint32_t (*)(std::span<const std::byte> bytes, std::uint32_t crc);

/// The way that any processor can go.
[[nodiscard]] std::uint32_t crc32_by_libdeflate(std::span<const std::byte> bytes,
                                                std::uint32_t crc);

/// The ways that this processor can go, fastest first; at least one.
[[nodiscard]] std::span<const Crc32Kernel> crc32_kernels();

}  // namespace shardwright

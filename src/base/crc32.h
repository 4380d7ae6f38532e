// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace shardwright {

/// CRC-32 of zip and gzip (polynomial 0x04C11DB7, reflected). `crc` is the value of the bytes
/// before, 0 at the start.
[[nodiscard]] std::uint32_t crc32(std::span<const std::byte> bytes, std::uint32_t crc = 0);

/// What a piece with this CRC-32 adds to the CRC-32 of a whole in which `length_behind` bytes come
/// behind it: the whole's is the exclusive or of what its pieces add, in any order.
[[nodiscard]] std::uint32_t crc32_share(std::uint32_t crc, std::uint64_t length_behind);

/// The CRC-32 of A followed by B, from the CRC-32 of each and the length of B: tiles of a payload
/// are summed in any order by any thread. Costs some 100 nanoseconds whatever the length.
[[nodiscard]] std::uint32_t crc32_combine(std::uint32_t crc_a, std::uint32_t crc_b,
                                          std::uint64_t length_b);

}  // namespace shardwright

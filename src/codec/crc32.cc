// SPDX-License-Identifier: Apache-2.0
#include "codec/crc32.h"

#include <libdeflate.h>

#include "codec/crc32_field.h"
#include "codec/crc32_kernel.h"

namespace shardwright {

std::uint32_t crc32_by_libdeflate(std::span<const std::byte> bytes, std::uint32_t crc) {
  return libdeflate_crc32(crc, bytes.data(), bytes.size());
}

std::uint32_t crc32(std::span<const std::byte> bytes, std::uint32_t crc) {
  return crc32_kernels().front()(bytes, crc);
}

std::uint32_t crc32_combine(std::uint32_t crc_a, std::uint32_t crc_b, std::uint64_t length_b) {
  // Appending n zero bytes multiplies a CRC by x^(8n); the pre- and post-inversions of A and B
  // cancel out.
  constexpr std::uint32_t x_to_the_8 = kCrc32One >> 8;
  return crc32_multiply(crc32_power(x_to_the_8, length_b), crc_a) ^ crc_b;
}

}  // namespace shardwright

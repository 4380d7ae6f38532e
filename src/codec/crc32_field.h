// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace shardwright {

/// 1 as an element of the field that CRC-32 counts in: polynomials over GF(2) modulo that of zip,
/// lowest power in the highest bit.
inline constexpr std::uint32_t kCrc32One = 0x80000000;

/// a·b in that field.
[[nodiscard]] constexpr std::uint32_t crc32_multiply(std::uint32_t a, std::uint32_t b) {
  constexpr std::uint32_t polynomial = 0xEDB88320;
  std::uint32_t product = 0;
  for (std::uint32_t bit = kCrc32One; bit != 0; bit >>= 1) {
    if ((a & bit) != 0) product ^= b;
    b = (b >> 1) ^ ((b & 1) != 0 ? polynomial : 0);
  }
  return product;
}

/// base^exponent in that field.
[[nodiscard]] constexpr std::uint32_t crc32_power(std::uint32_t base, std::uint64_t exponent) {
  std::uint32_t power = kCrc32One;
  for (; exponent != 0; exponent >>= 1) {
    if ((exponent & 1) != 0) power = crc32_multiply(power, base);
    base = crc32_multiply(base, base);
  }
  return power;
}

}  // namespace shardwright

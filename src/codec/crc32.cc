// SPDX-License-Identifier: Apache-2.0
#include "codec/crc32.h"

#include <libdeflate.h>

namespace shardwright {
namespace {

constexpr std::uint32_t kPolynomial = 0xEDB88320;  // reflected: bit 31 is the coefficient of x^0
constexpr std::uint32_t kOne = 0x80000000;
constexpr std::uint32_t kXToThe8 = 0x00800000;

/// a·b modulo the polynomial, over GF(2).
constexpr std::uint32_t multiply(std::uint32_t a, std::uint32_t b) {
  std::uint32_t product = 0;
  for (std::uint32_t bit = kOne; bit != 0; bit >>= 1) {
    if ((a & bit) != 0) product ^= b;
    b = (b >> 1) ^ ((b & 1) != 0 ? kPolynomial : 0);
  }
  return product;
}

}  // namespace

std::uint32_t crc32(std::span<const std::byte> bytes, std::uint32_t crc) {
  return libdeflate_crc32(crc, bytes.data(), bytes.size());
}

std::uint32_t crc32_combine(std::uint32_t crc_a, std::uint32_t crc_b, std::uint64_t length_b) {
  // Appending n zero bytes multiplies a CRC by x^(8n); the pre- and post-inversions of A and B
  // cancel out.
  std::uint32_t shift = kOne;
  for (std::uint32_t square = kXToThe8; length_b != 0; length_b >>= 1) {
    if ((length_b & 1) != 0) shift = multiply(shift, square);
    square = multiply(square, square);
  }
  return multiply(shift, crc_a) ^ crc_b;
}

}  // namespace shardwright

// SPDX-License-Identifier: Apache-2.0
#include "base/crc32.h"

#include <libdeflate.h>

#include <array>

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

/// x^(8·value·256^digit): appends that many zero bytes.
using Shifts = std::array<std::array<std::uint32_t, 256>, 8>;

constexpr Shifts make_shifts() {
  Shifts shifts{};
  std::uint32_t step = kXToThe8;
  for (auto& digit : shifts) {
    digit[0] = kOne;
    for (std::size_t value = 1; value < digit.size(); ++value) {
      digit[value] = multiply(digit[value - 1], step);
    }
    step = multiply(digit.back(), step);
  }
  return shifts;
}

constexpr Shifts kShifts = make_shifts();

}  // namespace

std::uint32_t crc32(std::span<const std::byte> bytes, std::uint32_t crc) {
  return libdeflate_crc32(crc, bytes.data(), bytes.size());
}

std::uint32_t crc32_share(std::uint32_t crc, std::uint64_t length_behind) {
  // Appending n zero bytes multiplies a CRC by x^(8n); the pre- and post-inversions of the pieces
  // cancel out. One factor for each byte of n.
  for (std::size_t digit = 0; length_behind != 0; length_behind >>= 8, ++digit) {
    const std::size_t value = length_behind & 0xFF;
    if (value != 0) crc = multiply(kShifts[digit][value], crc);
  }
  return crc;
}

std::uint32_t crc32_combine(std::uint32_t crc_a, std::uint32_t crc_b, std::uint64_t length_b) {
  return crc32_share(crc_a, length_b) ^ crc_b;
}

}  // namespace shardwright

// SPDX-License-Identifier: Apache-2.0
// CRC-32 by carry-less multiplication. A block of bits is a polynomial; one that is n bits further
// ahead may be multiplied by x^n modulo CRC-32's polynomial and added to what lies there, and the
// remainder stays the same. So many bytes are folded into the last few, which libdeflate sums up.
// (V. Gopal et al., "Fast CRC Computation for Generic Polynomials Using PCLMULQDQ", Intel 2009)
#include <immintrin.h>

#include <array>

#include "codec/crc32_field.h"
#include "codec/crc32_kernel.h"

namespace shardwright {
namespace {

constexpr std::size_t kAccumulators = 4;  // so many multiplications are under way at once

// x^n as the instruction wants it: a product of reflected polynomials comes out one bit too low.
constexpr std::int64_t factor(std::uint64_t n) {
  return static_cast<std::int64_t>(std::uint64_t{crc32_power(kCrc32One >> 1, n)} << 1);
}

// What carries the halves of 16 bytes over `bytes` bytes. The lower half is 64 bits further ahead;
// 32 bits are what a product of 64 by 33 bits is shifted by.
constexpr std::int64_t low_factor(std::size_t bytes) { return factor(8 * bytes + 32); }
constexpr std::int64_t high_factor(std::size_t bytes) { return factor(8 * bytes - 32); }

// The CRC of bytes before which nothing was: those that were folded have the start in them.
std::uint32_t crc_of_folded(std::span<const std::byte> folded) {
  return crc32_by_libdeflate(folded, ~std::uint32_t{0});
}

[[gnu::target("avx512f,vpclmulqdq")]]
std::uint32_t by_vpclmul(std::span<const std::byte> bytes, std::uint32_t crc) {
  using Block = __m512i;
  constexpr std::size_t stride = kAccumulators * sizeof(Block);
  if (bytes.size() < 2 * stride) return crc32_by_libdeflate(bytes, crc);
  constexpr std::int64_t low_half = low_factor(stride);
  constexpr std::int64_t high_half = high_factor(stride);
  const Block factors = _mm512_set_epi64(high_half, low_half, high_half, low_half, high_half,
                                         low_half, high_half, low_half);
  Block sums[kAccumulators];  // std::array would lose its alignment
  for (std::size_t i = 0; i < kAccumulators; ++i) {
    sums[i] = _mm512_loadu_si512(&bytes[i * sizeof(Block)]);
  }
  const __m128i start = _mm_cvtsi32_si128(static_cast<int>(~crc));
  sums[0] = _mm512_xor_si512(sums[0], _mm512_zextsi128_si512(start));
  for (bytes = bytes.subspan(stride); bytes.size() >= stride; bytes = bytes.subspan(stride)) {
    for (std::size_t i = 0; i < kAccumulators; ++i) {
      const Block low = _mm512_clmulepi64_epi128(sums[i], factors, 0x00);
      const Block high = _mm512_clmulepi64_epi128(sums[i], factors, 0x11);
      const Block next = _mm512_loadu_si512(&bytes[i * sizeof(Block)]);
      sums[i] = _mm512_ternarylogic_epi64(low, high, next, 0x96);  // low ^ high ^ next
    }
  }
  return crc32_by_libdeflate(bytes, crc_of_folded(std::as_bytes(std::span(sums))));
}

constexpr std::array<Crc32Kernel, 2> kKernels = {by_vpclmul, crc32_by_libdeflate};

}  // namespace

std::span<const Crc32Kernel> crc32_kernels() {
  static const bool has_wide =
      __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("vpclmulqdq") != 0;
  return std::span(kKernels).subspan(has_wide ? 0 : 1);
}

}  // namespace shardwright

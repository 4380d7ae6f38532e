// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstdint>

namespace shardwright {

[[nodiscard]] inline float f32_from_bf16(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

/// Rounds to nearest, ties to even; what is too large becomes infinite, a NaN stays a NaN. In
/// integers: hardware bf16 instructions flush denormals, which is not bit-exact.
[[nodiscard]] inline std::uint16_t bf16_from_f32(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t rounded = bits + 0x7fffU + ((bits >> 16) & 1U);
  const std::uint32_t quiet = bits | 0x00400000U;  // keep a NaN a (quiet) NaN
  // A selection, which vectors have, and no branch.
  return static_cast<std::uint16_t>(((bits & 0x7fffffffU) > 0x7f800000U ? quiet : rounded) >> 16);
}

}  // namespace shardwright

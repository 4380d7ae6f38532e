// SPDX-License-Identifier: Apache-2.0
#include "tensor/low_halves.h"

#include <bit>

namespace shardwright {
namespace {

float joined(float rounded, std::int16_t low) {
  const auto upper = static_cast<std::uint16_t>((std::bit_cast<std::uint32_t>(rounded) >> 16) -
                                                (low < 0 ? 1U : 0U));
  return std::bit_cast<float>(static_cast<std::uint32_t>(upper) << 16 |
                              static_cast<std::uint16_t>(low));
}

}  // namespace

std::int64_t join_low_halves(std::int64_t count, const float* low, float* numbers) {
  for (std::int64_t i = 0; i < count; ++i) {
    if (!(low[i] >= -32768.0F && low[i] <= 32767.0F)) return i;
    const auto half = static_cast<std::int16_t>(low[i]);
    if (static_cast<float>(half) != low[i]) return i;
    numbers[i] = joined(numbers[i], half);
  }
  return count;
}

}  // namespace shardwright

// SPDX-License-Identifier: Apache-2.0
#include "tensor/quantise.h"

#include <algorithm>
#include <bit>

namespace shardwright {
namespace {

constexpr std::uint32_t kMagnitude = 0x7fffffffU;
constexpr std::uint32_t kExponent = 0x7f800000U;
constexpr std::uint32_t kFraction = 0x007fffffU;
constexpr int kFractionBits = 23;
constexpr std::uint32_t kBias = 127;
constexpr float kMostOfFp8 = 448.0F;
constexpr float kMostOfFp4 = 6.0F;
// Below it DeepSeek's kernels take a block for empty.
constexpr float kLeastOfFp8 = 1e-4F;

// Adding to the bits carries into the exponent wherever there is a fraction.
float next_power(float value) {
  return std::bit_cast<float>((std::bit_cast<std::uint32_t>(value) + kFraction) & kExponent);
}

// Without branches, so that compilers make vectors of it.
std::uint8_t fp8_of(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t magnitude = bits & kMagnitude;
  // Numbers below 2^-6 are multiples of 2^-9: a sum with 2^14 rounds to them.
  constexpr float kRounder = 16384.0F;
  const std::uint32_t small =
      std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + kRounder) -
      std::bit_cast<std::uint32_t>(kRounder);
  // Others keep three bits of the fraction, and the bias becomes 7.
  constexpr int kDropped = kFractionBits - 3;
  constexpr std::uint32_t kRebias = (kBias - 7) << kFractionBits;
  constexpr std::uint32_t kHalf = (1U << (kDropped - 1)) - 1;
  constexpr std::uint32_t kMost = 0x7eU;
  const std::uint32_t rounded = magnitude + kHalf + (magnitude >> kDropped & 1U);
  const std::uint32_t large = std::min((rounded - kRebias) >> kDropped, kMost);
  constexpr std::uint32_t kLeastLarge = (kBias - 6) << kFractionBits;
  return static_cast<std::uint8_t>((magnitude < kLeastLarge ? small : large) |
                                   (bits >> 24 & 0x80U));
}

std::uint32_t fp4_of(float value) {
  constexpr float kBetween[] = {0.25F, 0.75F, 1.25F, 1.75F, 2.5F, 3.5F, 5.0F};
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const float magnitude = std::bit_cast<float>(bits & kMagnitude);
  std::uint32_t code = 0;
  for (const float half : kBetween) code += magnitude >= half ? 1 : 0;
  return code | (bits >> 28 & 8U);
}

}  // namespace

float greatest_magnitude(const float* values, std::int64_t count) {
  // As whole numbers magnitudes are in order, NaNs behind infinity.
  std::uint32_t greatest = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    greatest = std::max(greatest, std::bit_cast<std::uint32_t>(values[i]) & kMagnitude);
  }
  return std::bit_cast<float>(greatest);
}

float fp8_scale(float greatest, bool has_exponent) {
  const float scale = std::max(greatest, kLeastOfFp8) / kMostOfFp8;
  return has_exponent ? next_power(scale) : scale;
}

void quantise_fp8(const float* values, std::int64_t count, float scale, std::byte* codes) {
  for (std::int64_t i = 0; i < count; ++i)
    codes[i] = static_cast<std::byte>(fp8_of(values[i] / scale));
}

std::uint8_t exponent_of(float power) {
  return static_cast<std::uint8_t>(std::bit_cast<std::uint32_t>(power) >> kFractionBits);
}

std::uint8_t fp4_exponent(float greatest) { return exponent_of(next_power(greatest / kMostOfFp4)); }

void quantise_fp4(const float* values, std::int64_t count, std::uint8_t exponent,
                  std::byte* pairs) {
  // What they are multiplied with: exact, for its exponent is 254 - exponent, at least 1.
  const std::uint32_t inverse = exponent == 0 ? 0 : (2 * kBias - exponent) << kFractionBits;
  const float factor = std::bit_cast<float>(inverse);
  for (std::int64_t i = 0; i < count; i += 2) {
    const std::uint32_t low = fp4_of(values[i] * factor);
    const std::uint32_t high = fp4_of(values[i + 1] * factor);
    pairs[i / 2] = static_cast<std::byte>(low | high << 4);
  }
}

}  // namespace shardwright

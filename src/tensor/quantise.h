// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace shardwright {

/// The greatest magnitude of values; infinity or NaN where one of them is not finite.
[[nodiscard]] float greatest_magnitude(const float* values, std::int64_t count);

/// What the values of a block of e4m3 are divided by: its greatest magnitude, at least 1e-4, over
/// 448, and of `has_exponent` the next power of two that is not less.
[[nodiscard]] float fp8_scale(float greatest, bool has_exponent);

/// value / scale in float32, rounded to e4m3: to the nearest, ties to even, at most 448.
/// REQUIRES: finite values, a positive scale.
void quantise_fp8(const float* values, std::int64_t count, float scale, std::byte* codes);

/// Of a group of fp4 the exponent of what its values are divided by, biased by 127: of its greatest
/// magnitude over 6 the next power of two that is not less. 0 for a group of zeros.
[[nodiscard]] std::uint8_t fp4_exponent(float greatest);

/// The exponent, biased by 127, of a power of two.
[[nodiscard]] std::uint8_t exponent_of(float power);

/// Values over 2^(exponent - 127), rounded to fp4: to the nearest, halves away from zero, at most
/// 6. The first of two lies in the low half of a byte. REQUIRES: finite values, `count` is even.
void quantise_fp4(const float* values, std::int64_t count, std::uint8_t exponent, std::byte* pairs);

}  // namespace shardwright

// SPDX-License-Identifier: Apache-2.0
#include "tensor/quantise.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "shardwright/tensor.h"
#include "tensor/dequantise.h"

namespace shardwright {
namespace {

float fp8_value(int code) {
  const std::byte byte{static_cast<unsigned char>(code)};
  float value = 0;
  dequantise_run({DType::kF8E4M3, &byte, 0, 1, 1.0F}, 1, &value);
  return value;
}

int fp8_code(float value, float scale = 1.0F) {
  std::byte code{};
  quantise_fp8(&value, 1, scale, &code);
  return std::to_integer<int>(code);
}

std::array<int, 2> fp4_codes(float low, float high, std::uint8_t exponent = 127) {
  const std::array<float, 2> values{low, high};
  std::byte pair{};
  quantise_fp4(values.data(), 2, exponent, &pair);
  return {std::to_integer<int>(pair) & 15, std::to_integer<int>(pair) >> 4};
}

// 0x7f and 0xff are none.
TEST(QuantiseFp8, GivesEachCodeItsOwnValue) {
  for (int code = 0; code < 256; ++code) {
    if ((code & 0x7f) == 0x7f) continue;
    EXPECT_EQ(fp8_code(fp8_value(code)), code);
  }
}

TEST(QuantiseFp8, RoundsToTheNearestAndTiesToEven) {
  for (int code = 0; code < 0x7e; ++code) {
    const float below = fp8_value(code);
    const float above = fp8_value(code + 1);
    const float middle = (below + above) / 2;  // exact
    const int even = code % 2 == 0 ? code : code + 1;
    EXPECT_EQ(fp8_code(middle), even) << middle;
    EXPECT_EQ(fp8_code(std::nextafter(middle, 0.0F)), code) << middle;
    EXPECT_EQ(fp8_code(std::nextafter(middle, 500.0F)), code + 1) << middle;
    EXPECT_EQ(fp8_code(-middle), even | 0x80) << middle;
  }
}

TEST(QuantiseFp8, EndsAtTheGreatestAndKeepsTheSignOfZero) {
  for (const float large : {448.0F, 463.0F, 464.0F, 480.0F, 1e30F}) {
    EXPECT_EQ(fp8_code(large), 0x7e) << large;
    EXPECT_EQ(fp8_code(-large), 0xfe) << large;
  }
  EXPECT_EQ(fp8_code(0.0F), 0);
  EXPECT_EQ(fp8_code(-0.0F), 0x80);
  EXPECT_EQ(fp8_code(std::numeric_limits<float>::denorm_min()), 0);
}

TEST(QuantiseFp8, DividesByTheScaleFirst) {
  // 1 / 3 rounded and multiplied would be another number in the last bit; the quotient decides.
  EXPECT_EQ(fp8_code(3 * 17.0F, 3.0F), 0x58);  // 17 lies between 16 and 18
  EXPECT_EQ(fp8_code(std::nextafter(3 * 17.0F, 100.0F), 3.0F), 0x59);
}

TEST(Fp8Scale, IsTheGreatestOver448) {
  EXPECT_EQ(fp8_scale(448.0F, false), 1.0F);
  EXPECT_EQ(fp8_scale(1.0F, false), 1.0F / 448.0F);
  EXPECT_EQ(fp8_scale(0.0F, false), 1e-4F / 448.0F);
  EXPECT_EQ(fp8_scale(5e-5F, false), 1e-4F / 448.0F);
}

TEST(Fp8Scale, IsThePowerOfTwoThatIsNotLess) {
  EXPECT_EQ(fp8_scale(448.0F, true), 1.0F);
  EXPECT_EQ(fp8_scale(std::nextafter(448.0F, 500.0F), true), 2.0F);
  EXPECT_EQ(fp8_scale(225.0F, true), 1.0F);
  EXPECT_EQ(fp8_scale(224.0F, true), 0.5F);
  EXPECT_EQ(fp8_scale(0.0F, true), std::ldexp(1.0F, -22));
  EXPECT_EQ(exponent_of(1.0F), 127);
  EXPECT_EQ(exponent_of(0.25F), 125);
}

TEST(QuantiseFp4, RoundsHalvesAwayFromZero) {
  constexpr std::array<float, 8> kValues{0.0F, 0.5F, 1.0F, 1.5F, 2.0F, 3.0F, 4.0F, 6.0F};
  for (int code = 0; code < 8; ++code) {
    const float value = kValues[static_cast<std::size_t>(code)];
    EXPECT_EQ(fp4_codes(value, -value), (std::array{code, code | 8}));
    if (code == 7) break;
    const float middle = (value + kValues[static_cast<std::size_t>(code) + 1]) / 2;
    EXPECT_EQ(fp4_codes(middle, -middle), (std::array{code + 1, code + 9})) << middle;
    EXPECT_EQ(fp4_codes(std::nextafter(middle, 0.0F), 0.0F)[0], code) << middle;
  }
  EXPECT_EQ(fp4_codes(100.0F, -100.0F), (std::array{7, 15}));
  EXPECT_EQ(fp4_codes(0.75F, 12.0F, 128), (std::array{1, 7}));
}

TEST(Fp4Exponent, IsThatOfThePowerOfTwoThatIsNotLess) {
  EXPECT_EQ(fp4_exponent(6.0F), 127);
  EXPECT_EQ(fp4_exponent(std::nextafter(6.0F, 7.0F)), 128);
  EXPECT_EQ(fp4_exponent(3.0F), 126);
  EXPECT_EQ(fp4_exponent(0.0F), 0);
  EXPECT_EQ(fp4_exponent(std::numeric_limits<float>::denorm_min()), 0);  // a sixth of it is zero
  EXPECT_EQ(fp4_exponent(std::numeric_limits<float>::max()), 253);
  EXPECT_EQ(fp4_codes(1.0F, -1.0F, 0), (std::array{0, 8}));
}

TEST(GreatestMagnitude, LooksAtSignsAndNumbersThatAreNone) {
  const float infinity = std::numeric_limits<float>::infinity();
  std::vector<float> values{0.5F, -3.0F, 2.0F};
  EXPECT_EQ(greatest_magnitude(values.data(), 3), 3.0F);
  EXPECT_EQ(greatest_magnitude(values.data(), 1), 0.5F);
  values[1] = -infinity;
  EXPECT_EQ(greatest_magnitude(values.data(), 3), infinity);
  values[2] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(std::isnan(greatest_magnitude(values.data(), 3)));
}

TEST(QuantiseFp8, ScalesAreOfTheGreatestMagnitude) {
  EXPECT_EQ(fp8_scale(448.0F * 3, false), 3.0F);
  EXPECT_EQ(fp8_scale(448.0F * 3, true), 4.0F);
  EXPECT_EQ(fp8_scale(448.0F * 4, true), 4.0F);
  for (const float small : {0.0F, 1e-6F}) {
    EXPECT_EQ(fp8_scale(small, false), 1e-4F / 448.0F);
    EXPECT_EQ(fp8_scale(small, true), std::exp2(-22.0F));
  }
}

TEST(QuantiseFp4, TheLeastExponentsAreOfNumbersToo) {
  const float values[] = {std::exp2(-126.0F), 0.0F};
  std::byte pair{};
  quantise_fp4(values, 2, 1, &pair);
  EXPECT_EQ(static_cast<int>(pair), 2) << "1.0";
  quantise_fp4(values, 2, 0, &pair);
  EXPECT_EQ(static_cast<int>(pair), 0);
}

// What is read again is off by half a step of its binade at most: 2^-4 of the number itself, or
// half the least step of the block.
TEST(QuantiseFp8, IsOffByASixteenthAtMost) {
  std::vector<float> values;
  for (int i = 0; i < 4096; ++i) {
    values.push_back(std::sin(static_cast<float>(i)) * std::exp2(static_cast<float>(i % 24 - 12)));
  }
  const auto count = std::ssize(values);
  for (const bool has_exponent : {false, true}) {
    const float scale = fp8_scale(greatest_magnitude(values.data(), count), has_exponent);
    std::vector<std::byte> codes(values.size());
    quantise_fp8(values.data(), count, scale, codes.data());
    std::vector<float> read(values.size());
    dequantise_run({DType::kF8E4M3, codes.data(), 0, 1, scale}, count, read.data());
    for (std::size_t i = 0; i < values.size(); ++i) {
      const float bound = std::max(std::abs(values[i]) / 16, scale / 1024) * 1.0001F;
      EXPECT_LE(std::abs(read[i] - values[i]), bound) << values[i];
    }
  }
}

}  // namespace
}  // namespace shardwright

// SPDX-License-Identifier: Apache-2.0
#include "tensor/dequantise.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

namespace shardwright {
namespace {

std::vector<float> products(const QuantisedRun& run, std::int64_t count) {
  std::vector<float> values(static_cast<std::size_t>(count));
  dequantise_run(run, count, values.data());
  return values;
}

// By the definition of the format, in arithmetic.
double e4m3(unsigned code) {
  const int exponent = static_cast<int>(code >> 3 & 0xfU);
  const int mantissa = static_cast<int>(code & 7U);
  if ((code & 0x7fU) == 0x7fU) return std::numeric_limits<double>::quiet_NaN();
  const double magnitude =
      exponent == 0 ? std::ldexp(mantissa, -9) : std::ldexp(8 + mantissa, exponent - 10);
  return (code & 0x80U) != 0 ? -magnitude : magnitude;
}

TEST(Dequantise, KnowsEveryE4m3Code) {
  std::array<std::byte, 256> codes;
  for (unsigned code = 0; code < 256; ++code) codes[code] = static_cast<std::byte>(code);
  const std::vector<float> values = products({DType::kF8E4M3, codes.data(), 0, 1, 1.0F}, 256);
  for (unsigned code = 0; code < 256; ++code) {
    const float expected = static_cast<float>(e4m3(code));
    if (std::isnan(expected)) {
      EXPECT_TRUE(std::isnan(values[code])) << code;
      EXPECT_TRUE(code == 0x7f || code == 0xff);
    } else {
      EXPECT_EQ(std::bit_cast<std::uint32_t>(values[code]), std::bit_cast<std::uint32_t>(expected))
          << code;
    }
  }
  EXPECT_EQ(values[0x7e], 448.0F);
  EXPECT_EQ(values[0x01], std::ldexp(1.0F, -9));
}

TEST(Dequantise, TakesEveryOtherValue) {
  const std::array<std::byte, 5> codes = {std::byte{0x38}, std::byte{0}, std::byte{0x40},
                                          std::byte{0}, std::byte{0xb8}};
  EXPECT_EQ(products({DType::kF8E4M3, codes.data(), 2, 2, 0.5F}, 2),
            (std::vector<float>{1.0F, -0.5F}));
}

TEST(Dequantise, KnowsEveryFp4CodeAtEveryExponent) {
  constexpr std::array<double, 8> kMagnitudes = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
  std::array<std::byte, 8> pairs;
  for (unsigned i = 0; i < 8; ++i) pairs[i] = static_cast<std::byte>((2 * i + 1) << 4 | 2 * i);
  for (unsigned exponent = 0; exponent < 256; ++exponent) {
    const std::byte byte = static_cast<std::byte>(exponent);
    const float scale = load_scale(DType::kF8E8M0, &byte);
    const std::vector<float> values = products({DType::kF4E2M1X2, pairs.data(), 0, 1, scale}, 16);
    for (unsigned code = 0; code < 16; ++code) {
      const double magnitude = std::ldexp(kMagnitudes[code % 8], static_cast<int>(exponent) - 127);
      const float expected = static_cast<float>(code < 8 ? magnitude : -magnitude);
      if (exponent == 255) {
        EXPECT_TRUE(std::isnan(values[code]));
      } else {
        EXPECT_EQ(std::bit_cast<std::uint32_t>(values[code]),
                  std::bit_cast<std::uint32_t>(expected))
            << code << " at " << exponent;
      }
    }
  }
}

TEST(Dequantise, FindsAHalfByteFromAnyStart) {
  const std::array<std::byte, 4> pairs = {std::byte{0x21}, std::byte{0x43}, std::byte{0x65},
                                          std::byte{0x07}};
  EXPECT_EQ(products({DType::kF4E2M1X2, pairs.data(), 1, 1, 2.0F}, 3),
            (std::vector<float>{2.0F, 3.0F, 4.0F}));
  EXPECT_EQ(products({DType::kF4E2M1X2, pairs.data(), 1, 3, 1.0F}, 3),
            (std::vector<float>{1.0F, 3.0F, 0.0F}));
}

TEST(Dequantise, InfinitiesAndNansAreData) {
  const std::array<std::byte, 2> codes = {std::byte{0x00}, std::byte{0x38}};
  const float infinity = std::numeric_limits<float>::infinity();
  const std::vector<float> values = products({DType::kF8E4M3, codes.data(), 0, 1, infinity}, 2);
  EXPECT_TRUE(std::isnan(values[0]));
  EXPECT_EQ(values[1], infinity);
  EXPECT_EQ(products({DType::kF8E4M3, codes.data(), 1, 1, 0.0F}, 1)[0], 0.0F);
}

TEST(Dequantise, SubtractsZerosFromIntegers) {
  // 0x21: 1 then 2; 0xf8: 8 then 15.
  const std::array<std::byte, 2> nibbles = {std::byte{0x21}, std::byte{0xf8}};
  QuantisedRun run{DType::kU8, nibbles.data(), 0, 1, 0.5F, 4, 8.0F};
  EXPECT_EQ(products(run, 4), (std::vector<float>{-3.5F, -3.0F, 0.0F, 3.5F}));
  run.first = 1;
  EXPECT_EQ(products(run, 3), (std::vector<float>{-3.0F, 0.0F, 3.5F}));
  run.stride = 2;
  EXPECT_EQ(products(run, 2), (std::vector<float>{-3.0F, 3.5F}));
  // 0xe4: 0, 1, 2, 3 from the lowest bits on.
  const std::byte pairs{0xe4};
  EXPECT_EQ(products({DType::kU8, &pairs, 0, 1, 2.0F, 2, 1.0F}, 4),
            (std::vector<float>{-2.0F, 0.0F, 2.0F, 4.0F}));
  const std::array<std::byte, 3> bytes = {std::byte{0}, std::byte{128}, std::byte{255}};
  EXPECT_EQ(products({DType::kU8, bytes.data(), 0, 1, 1.0F, 8, 128.0F}, 3),
            (std::vector<float>{-128.0F, 0.0F, 127.0F}));
  EXPECT_EQ(products({DType::kU8, bytes.data(), 0, 2, 1.0F, 8, 0.0F}, 2),
            (std::vector<float>{0.0F, 255.0F}));
}

TEST(Dequantise, ReadsEveryHalfPrecisionScale) {
  for (unsigned bits = 0; bits < 0x10000; ++bits) {
    const auto code = static_cast<std::uint16_t>(bits);
    const float got = load_scale(DType::kF16, reinterpret_cast<const std::byte*>(&code));
    const int exponent = static_cast<int>(bits >> 10 & 0x1f);
    const int mantissa = static_cast<int>(bits & 0x3ff);
    if (exponent == 31 && mantissa != 0) {
      EXPECT_TRUE(std::isnan(got)) << bits;
      continue;
    }
    double magnitude =
        std::ldexp(exponent == 0 ? mantissa : mantissa + 1024, std::max(exponent, 1) - 25);
    if (exponent == 31) magnitude = std::numeric_limits<double>::infinity();
    const float expected = static_cast<float>((bits & 0x8000) != 0 ? -magnitude : magnitude);
    EXPECT_EQ(std::bit_cast<std::uint32_t>(got), std::bit_cast<std::uint32_t>(expected)) << bits;
  }
}

TEST(Dequantise, ReadsScalesOfAllTypes) {
  const std::uint16_t bf16 = 0xbfc0;  // -1.5
  const std::uint16_t f16 = 0xbe00;
  const float f32 = -1.5F;
  for (const auto& [dtype, bytes] :
       {std::pair{DType::kBF16, reinterpret_cast<const std::byte*>(&bf16)},
        std::pair{DType::kF16, reinterpret_cast<const std::byte*>(&f16)},
        std::pair{DType::kF32, reinterpret_cast<const std::byte*>(&f32)}}) {
    EXPECT_TRUE(is_scale(dtype));
    EXPECT_EQ(load_scale(dtype, bytes), -1.5F) << torch_name(dtype);
  }
  const std::byte e4m3{0xbc};
  EXPECT_TRUE(is_scale(DType::kF8E4M3));
  EXPECT_EQ(load_scale(DType::kF8E4M3, &e4m3), -1.5F);
  EXPECT_FALSE(is_scale(DType::kU8));
  EXPECT_FALSE(is_scale(DType::kF64));
}

}  // namespace
}  // namespace shardwright

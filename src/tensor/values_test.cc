// SPDX-License-Identifier: Apache-2.0
#include "tensor/values.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace shardwright {
namespace {

double one(DType dtype, std::vector<unsigned> bytes) {
  std::vector<std::byte> raw;
  for (const unsigned byte : bytes) raw.push_back(static_cast<std::byte>(byte));
  double value = -1.0;
  decode_values(dtype, raw, std::span(&value, 1));
  return value;
}

// What torch gives for the same bytes.
TEST(Values, AreTorchs) {
  EXPECT_EQ(one(DType::kF8E4M3, {0x38}), 1.0);
  EXPECT_EQ(one(DType::kF8E4M3, {0x7e}), 448.0);
  EXPECT_EQ(one(DType::kF8E4M3, {0x81}), -std::ldexp(1.0, -9));
  EXPECT_TRUE(std::isnan(one(DType::kF8E4M3, {0x7f})));
  EXPECT_EQ(one(DType::kF8E5M2, {0x3c}), 1.0);
  EXPECT_EQ(one(DType::kF8E5M2, {0xfc}), -HUGE_VAL);
  EXPECT_TRUE(std::isnan(one(DType::kF8E5M2, {0x7d})));
  EXPECT_EQ(one(DType::kF8E4M3Fnuz, {0x40}), 1.0);
  EXPECT_EQ(one(DType::kF8E4M3Fnuz, {0x7f}), 240.0);
  EXPECT_TRUE(std::isnan(one(DType::kF8E4M3Fnuz, {0x80})));
  EXPECT_EQ(one(DType::kF8E5M2Fnuz, {0x40}), 1.0);
  EXPECT_EQ(one(DType::kF8E8M0, {0x7f}), 1.0);
  EXPECT_TRUE(std::isnan(one(DType::kF8E8M0, {0xff})));
  EXPECT_EQ(one(DType::kBF16, {0x80, 0xbf}), -1.0);
  EXPECT_EQ(one(DType::kF16, {0x00, 0x3c}), 1.0);
  EXPECT_EQ(one(DType::kF32, {0, 0, 0x80, 0x3f}), 1.0);
  EXPECT_EQ(one(DType::kI8, {0xff}), -1.0);
  EXPECT_EQ(one(DType::kU8, {0xff}), 255.0);
  EXPECT_EQ(one(DType::kI16, {0xfe, 0xff}), -2.0);
  EXPECT_EQ(one(DType::kU32, {0, 0, 0, 0x80}), 2147483648.0);
}

TEST(Values, AreToldWithAllDigits) {
  const auto text = [](DType dtype, auto value) {
    return value_text(dtype, std::as_bytes(std::span(&value, 1)));
  };
  EXPECT_EQ(text(DType::kI64, std::numeric_limits<std::int64_t>::max()), "9223372036854775807");
  EXPECT_EQ(text(DType::kI64, std::int64_t{-9007199254740993}), "-9007199254740993");
  EXPECT_EQ(text(DType::kU64, std::numeric_limits<std::uint64_t>::max()), "18446744073709551615");
  EXPECT_EQ(text(DType::kI32, -7), "-7");
  EXPECT_EQ(text(DType::kF64, 0.1), "0.1");
  EXPECT_EQ(text(DType::kF64, std::copysign(std::nan(""), -1.0)), "nan");
  EXPECT_EQ(text(DType::kF64, -HUGE_VAL), "-inf");
}

TEST(Values, OfComplexTypesArePairs) {
  const std::vector<float> parts = {1.5F, -2.0F};
  std::vector<double> values(2);
  decode_values(DType::kC64, std::as_bytes(std::span(parts)), values);
  EXPECT_THAT(values, testing::ElementsAre(1.5, -2.0));
  EXPECT_EQ(parts_of(DType::kC64), 2);
  EXPECT_EQ(parts_of(DType::kBF16), 1);
  EXPECT_EQ(parts_of(DType::kF4E2M1X2), 0);
}

}  // namespace
}  // namespace shardwright

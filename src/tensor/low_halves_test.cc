// SPDX-License-Identifier: Apache-2.0
#include "tensor/low_halves.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <bit>
#include <limits>
#include <vector>

namespace shardwright::low_halves {
namespace {

// As FusedAdam splits a number: its rounding of a tie is upwards, not to even.
float rounded_up(std::uint32_t bits) {
  return std::bit_cast<float>((bits + 0x8000U) & 0xFFFF0000U);
}

RC_GTEST_PROP(LowHalves, GiveTheNumberThatWasSplit, (std::uint32_t bits)) {
  RC_PRE((bits & 0x7FFFFFFFU) < 0x7F7F8000U);  // what rounds to a number
  const auto low = static_cast<float>(static_cast<std::int16_t>(static_cast<std::uint16_t>(bits)));
  float number = rounded_up(bits);
  RC_ASSERT(join_low_halves(1, &low, &number) == 1);
  RC_ASSERT(std::bit_cast<std::uint32_t>(number) == bits);
}

TEST(LowHalves, OfTiesAndBothEnds) {
  const std::vector<float> low = {0, 1, -1, 32767, -32768};
  std::vector<float> numbers(low.size(), 1.0F);
  EXPECT_EQ(join_low_halves(5, low.data(), numbers.data()), 5);
  const std::vector<std::uint32_t> expected = {0x3F800000, 0x3F800001, 0x3F7FFFFF, 0x3F807FFF,
                                               0x3F7F8000};
  for (std::size_t i = 0; i < low.size(); ++i) {
    EXPECT_EQ(std::bit_cast<std::uint32_t>(numbers[i]), expected[i]) << i;
  }
}

TEST(LowHalves, AreWholeNumbersOfSixteenBits) {
  for (const float wrong : {0.5F, 32768.0F, -32769.0F, std::numeric_limits<float>::quiet_NaN(),
                            std::numeric_limits<float>::infinity()}) {
    const std::vector<float> low = {7, wrong};
    std::vector<float> numbers(2, 1.0F);
    EXPECT_EQ(join_low_halves(2, low.data(), numbers.data()), 1) << wrong;
  }
}

}  // namespace
}  // namespace shardwright::low_halves

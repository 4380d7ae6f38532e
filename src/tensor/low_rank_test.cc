// SPDX-License-Identifier: Apache-2.0
#include "tensor/low_rank.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <cstdint>
#include <vector>

namespace shardwright::low_rank {
namespace {

// [2, 2] of rank 2: 1 + 0.5 * (1*5 + 2*7), 2 + 0.5 * (1*6 + 2*8), ...
TEST(LowRank, IsAddedScaled) {
  const std::vector<float> left = {1, 2, 3, 4};
  const std::vector<float> right = {5, 6, 7, 8};
  std::vector<float> values = {1, 2, 3, 4};
  add_low_rank({left.data(), right.data(), 2, 2, 2}, 0.5F, values.data());
  EXPECT_EQ(values, (std::vector<float>{10.5F, 13.0F, 24.5F, 29.0F}));
}

// (1 + e) * (1 + e) - (1 + 2e) is e*e in one rounding, and 0 where the product is rounded first.
TEST(LowRank, SumsAreFused) {
  const float e = 0x1p-13F;
  const std::vector<float> left = {-1, 1 + e};
  const std::vector<float> right = {1 + 2 * e, 1 + e};
  float value = 0;
  add_low_rank({left.data(), right.data(), 1, 1, 2}, 1.0F, &value);
  EXPECT_EQ(value, e * e);
}

// The product with the scale is rounded before it is added: fused it would be e*e.
TEST(LowRank, TheScaledSumIsRoundedBeforeItIsAdded) {
  const float e = 0x1p-13F;
  const std::vector<float> left = {1 + e};
  for (const std::int64_t columns : {1, 40}) {
    const std::vector<float> right(static_cast<std::size_t>(columns), 1);
    std::vector<float> values(static_cast<std::size_t>(columns), -(1 + 2 * e));
    add_low_rank({left.data(), right.data(), 1, columns, 1}, 1 + e, values.data());
    for (const float value : values) EXPECT_EQ(value, 0.0F);
  }
}

// Whatever width the loops work in, an element is what its own row and column give.
RC_GTEST_PROP(LowRank, EachElementIsItsOwn, ()) {
  const std::int64_t rows = *rc::gen::inRange<std::int64_t>(1, 6);
  const std::int64_t columns = *rc::gen::inRange<std::int64_t>(1, 90);
  const std::int64_t rank = *rc::gen::inRange<std::int64_t>(1, 20);
  const auto made = [](std::int64_t count, std::uint32_t seed) {
    std::vector<float> values;
    for (std::int64_t i = 0; i < count; ++i) {
      seed = seed * 1664525U + 1013904223U;
      values.push_back(static_cast<float>(static_cast<std::int32_t>(seed)) * 0x1p-30F);
    }
    return values;
  };
  const std::vector<float> left = made(rows * rank, 1);
  const std::vector<float> right = made(rank * columns, 2);
  const std::vector<float> before = made(rows * columns, 3);
  std::vector<float> values = before;
  add_low_rank({left.data(), right.data(), rows, columns, rank}, 0.3F, values.data());
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t c = 0; c < columns; ++c) {
      float sum = 0;
      for (std::int64_t k = 0; k < rank; ++k) {
        sum = std::fma(left[static_cast<std::size_t>(r * rank + k)],
                       right[static_cast<std::size_t>(k * columns + c)], sum);
      }
      const std::size_t at = static_cast<std::size_t>(r * columns + c);
      const volatile float product = 0.3F * sum;
      const float expected = before[at] + product;
      RC_ASSERT(values[at] == expected);
    }
  }
}

}  // namespace
}  // namespace shardwright::low_rank

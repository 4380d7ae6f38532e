// SPDX-License-Identifier: Apache-2.0
#include "base/allowance.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace shardwright {
namespace {

TEST(Allowance, IsSixtyFourMebibytesAndSixteenTimesTheFile) {
  EXPECT_EQ(Allowance::of(0), std::uint64_t{64} << 20);
  EXPECT_EQ(Allowance::of(1000), (std::uint64_t{64} << 20) + 16000);
  EXPECT_EQ(Allowance::of(std::numeric_limits<std::uint64_t>::max()),
            std::numeric_limits<std::uint64_t>::max());
}

TEST(Allowance, RefusesWhatGoesBeyondAndTakesNothingThen) {
  Allowance allowance(10);
  ASSERT_TRUE(allowance.take(Allowance::of(10) - 5, "lists"));
  const Status refused = allowance.take(6, "lists");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kLimit);
  EXPECT_THAT(refused.error().message, ::testing::HasSubstr("lists expand to more than 67109024"));
  EXPECT_EQ(allowance.left(), 5u);
  EXPECT_TRUE(allowance.take(5, "lists"));
  EXPECT_EQ(allowance.taken(), Allowance::of(10));
}

}  // namespace
}  // namespace shardwright

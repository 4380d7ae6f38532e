// SPDX-License-Identifier: Apache-2.0
#include "remote/byte_ranges.h"

#include <gtest/gtest.h>

#include <utility>

namespace shardwright {
namespace {

using Range = std::pair<std::uint64_t, std::uint64_t>;

TEST(ByteRanges, ThoseThatTouchAreOne) {
  ByteRanges ranges;
  const auto added = [&](ByteRange range) {
    const ByteRange whole = ranges.add(range);
    return Range(whole.offset, whole.length);
  };
  EXPECT_EQ(added({10, 5}), Range(10, 5));
  EXPECT_EQ(added({20, 5}), Range(20, 5));
  EXPECT_EQ(added({15, 2}), Range(10, 7));
  EXPECT_EQ(added({0, 9}), Range(0, 9));
  EXPECT_EQ(added({9, 1}), Range(0, 17));
  EXPECT_EQ(added({17, 3}), Range(0, 25));
  EXPECT_EQ(added({3, 4}), Range(0, 25));
  EXPECT_EQ(added({24, 6}), Range(0, 30));
}

TEST(ByteRanges, MeetsWhatIsThere) {
  ByteRanges ranges;
  EXPECT_FALSE(ranges.meets({0, 100}));
  ranges.add({10, 5});
  ranges.add({20, 5});
  EXPECT_TRUE(ranges.meets({0, 11}));
  EXPECT_TRUE(ranges.meets({14, 1}));
  EXPECT_TRUE(ranges.meets({12, 20}));
  EXPECT_TRUE(ranges.meets({0, 100}));
  EXPECT_FALSE(ranges.meets({0, 10}));
  EXPECT_FALSE(ranges.meets({15, 5}));
  EXPECT_FALSE(ranges.meets({25, 1}));
}

}  // namespace
}  // namespace shardwright

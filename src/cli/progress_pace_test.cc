// SPDX-License-Identifier: Apache-2.0
#include "cli/progress_pace.h"

#include <gtest/gtest.h>

namespace shardwright::cli {
namespace {

TEST(ProgressPace, SaysNothingOfShortWork) {
  ProgressPace pace;
  EXPECT_FALSE(pace.is_due(0.0, 0.0));
  EXPECT_FALSE(pace.is_due(1.9, 1.0));
}

TEST(ProgressPace, IsDueAfterTenSecondsOrAtTheNextTwentieth) {
  ProgressPace slow;
  EXPECT_FALSE(slow.is_due(9.9, 0.01));
  EXPECT_TRUE(slow.is_due(10.0, 0.01));
  EXPECT_FALSE(slow.is_due(19.9, 0.02));
  EXPECT_TRUE(slow.is_due(20.0, 0.02));
  ProgressPace fast;
  EXPECT_FALSE(fast.is_due(2.5, 0.04));
  EXPECT_TRUE(fast.is_due(3.0, 0.05));
  EXPECT_FALSE(fast.is_due(4.9, 0.50)) << "within two seconds of the last";
  EXPECT_TRUE(fast.is_due(5.0, 0.50));
}

TEST(ProgressPace, MakesAtMostALineEveryTwoSecondsAndAtLeastOneEveryTen) {
  ProgressPace pace;
  int lines = 0;
  for (int tenth = 0; tenth <= 10'000; ++tenth) {
    lines += pace.is_due(tenth / 10.0, tenth / 10'000.0) ? 1 : 0;
  }
  EXPECT_EQ(lines, 100) << "1000 s of even work: every 10 s";
}

}  // namespace
}  // namespace shardwright::cli

// SPDX-License-Identifier: Apache-2.0
#include "comm/rank_watch.h"

#include <gtest/gtest.h>

namespace shardwright {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(RankWatch, NamesTheFirstThatIsSilentTooLong) {
  const RankWatch::Time start{};
  RankWatch watch(4, {1, 2, 3}, start);
  EXPECT_EQ(watch.silent(seconds(2), start + seconds(2)), std::nullopt);
  watch.hear(1, start + seconds(1));
  EXPECT_EQ(watch.silent(seconds(2), start + milliseconds(2001)), 2);
  watch.leave(2);
  EXPECT_EQ(watch.silent(seconds(2), start + milliseconds(2001)), 3);
  watch.hear(3, start + seconds(2));
  EXPECT_EQ(watch.silent(seconds(2), start + milliseconds(2001)), std::nullopt);
}

TEST(RankWatch, WhoHasLeftIsNotWatchedAgain) {
  const RankWatch::Time start{};
  RankWatch watch(3, {1, 2}, start);
  watch.leave(1);
  watch.hear(1, start);  // a message that was on its way
  EXPECT_FALSE(watch.all_left());
  EXPECT_EQ(watch.silent(seconds(1), start + seconds(9)), 2);
  watch.leave(2);
  EXPECT_TRUE(watch.all_left());
  EXPECT_EQ(watch.silent(seconds(1), start + seconds(9)), std::nullopt);
}

TEST(RankWatch, AfterARestartNobodyWasSilentWhoIsStillThere) {
  const RankWatch::Time start{};
  RankWatch watch(3, {1, 2}, start);
  watch.leave(1);
  watch.restart(start + seconds(5));
  EXPECT_EQ(watch.silent(seconds(1), start + seconds(6)), std::nullopt);
  EXPECT_EQ(watch.silent(seconds(1), start + milliseconds(6001)), 2) << "1 has left for good";
}

}  // namespace
}  // namespace shardwright

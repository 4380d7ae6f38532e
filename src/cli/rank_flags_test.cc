// SPDX-License-Identifier: Apache-2.0
#include "cli/rank_flags.h"

#include <gtest/gtest.h>

namespace shardwright::cli {
namespace {

using Words = std::vector<std::string>;

TEST(RankFlags, AreTakenOutWhereverTheyStand) {
  for (Words words : {Words{"--rank-timeout", "5", "convert", "in", "out"},
                      Words{"convert", "in", "--rank-timeout=5", "out"},
                      Words{"convert", "in", "out", "--rank-timeout", "5"},
                      Words{"convert", "--rank_timeout=5", "in", "out"},
                      Words{"--rank_timeout", "5", "convert", "in", "out"}}) {
    EXPECT_EQ(take_rank_flags(words)->timeout, std::chrono::seconds(5));
    EXPECT_EQ(words, (Words{"convert", "in", "out"}));
  }
  Words plain = {"convert", "in", "out"};
  EXPECT_EQ(take_rank_flags(plain)->timeout, std::chrono::seconds(60));
  EXPECT_EQ(plain.size(), 3U);
  Words behind = {"convert", "--", "--rank-timeout", "5"};
  EXPECT_EQ(take_rank_flags(behind)->timeout, std::chrono::seconds(60));
  EXPECT_EQ(behind, (Words{"convert", "--", "--rank-timeout", "5"}));
}

TEST(RankFlags, TellTheFileSystemsTimeFromTheRanks) {
  Words words = {"--io-timeout", "7", "verify", "--rank-timeout=5", "in"};
  const RankFlags flags = take_rank_flags(words).value();
  EXPECT_EQ(flags.io_timeout, std::chrono::seconds(7));
  EXPECT_EQ(flags.timeout, std::chrono::seconds(5));
  EXPECT_EQ(words, (Words{"verify", "in"}));
}

TEST(RankFlags, RefusesWhatIsNoTime) {
  for (const std::string value : {"", "1", "x", "5s", "-3", "86401", "99999999999"}) {
    Words words = {"verify", "in", "--rank-timeout", value};
    EXPECT_EQ(take_rank_flags(words).error().code, Code::kUsage) << value;
  }
  Words none = {"verify", "--rank-timeout"};
  EXPECT_EQ(take_rank_flags(none).error().code, Code::kUsage);
}

}  // namespace
}  // namespace shardwright::cli

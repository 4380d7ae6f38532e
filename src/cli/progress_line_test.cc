// SPDX-License-Identifier: Apache-2.0
#include "cli/progress_line.h"

#include <gtest/gtest.h>

namespace shardwright::cli {
namespace {

TEST(ProgressText, TellsRateTimeAndMemory) {
  const ProgressSample sample{{1'200'000'000, 2'400'000'000}, 2.0, std::uint64_t{118} << 20};
  EXPECT_EQ(progress_text(sample, 100),
            " 50 %  1.20 GB of 2.40 GB  0.60 GB/s  ETA 2.00 s  RSS 118 MiB");
  EXPECT_EQ(progress_text(sample, 12), " 50 %  1.20…");
}

TEST(ProgressText, SaysNothingThatItDoesNotKnow) {
  EXPECT_EQ(progress_text({{0, 2'000}, 5.0, 0}, 100), "  0 %  0 bytes of 2.00 kB");
  EXPECT_EQ(progress_text({{1'000, 2'000}, 0.1, 0}, 100), " 50 %  1.00 kB of 2.00 kB");
  EXPECT_EQ(progress_text({{0, 0}, 0.0, 0}, 100), "100 %  0 bytes of 0 bytes");
}

TEST(ProgressText, ReachesAHundredOnlyAtTheEnd) {
  EXPECT_EQ(progress_text({{999, 1'000}, 0.0, 0}, 5), " 99 …");
  EXPECT_EQ(progress_text({{1'001, 1'000}, 0.0, 0}, 5), "100 …");
}

TEST(ResidentBytes, IsThatOfALivingProcess) {
  EXPECT_GT(resident_bytes(), std::uint64_t{100'000});
  EXPECT_LT(resident_bytes(), std::uint64_t{1} << 40);
}

}  // namespace
}  // namespace shardwright::cli

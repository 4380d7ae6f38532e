// SPDX-License-Identifier: Apache-2.0
#include "remote/sent_file.h"

#include <gtest/gtest.h>

namespace shardwright {
namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

TEST(SentFile, HasAtMostTenThousandParts) {
  EXPECT_EQ(part_bytes_for(0, 16 * kMiB), 16 * kMiB);
  EXPECT_EQ(part_bytes_for(160'000 * kMiB, 16 * kMiB), 16 * kMiB);
  EXPECT_EQ(part_bytes_for(160'000 * kMiB + 1, 16 * kMiB), 17 * kMiB);
  const std::uint64_t most = std::uint64_t{5} << 40;  // that S3 takes
  const std::uint64_t part = part_bytes_for(most, 16 * kMiB);
  EXPECT_LE((most + part - 1) / part, 10'000U);
}

}  // namespace
}  // namespace shardwright

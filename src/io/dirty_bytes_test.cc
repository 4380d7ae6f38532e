// SPDX-License-Identifier: Apache-2.0
#include "io/dirty_bytes.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>

namespace shardwright {
namespace {

constexpr std::uint64_t kQuarter = DirtyBytes::kBatchBytes / 4;

// In quarters of a batch: what is sent when `length` were written at `offset`.
std::string sent(DirtyBytes& dirty, std::uint64_t offset, std::uint64_t length) {
  const std::optional<ByteRange> batch = dirty.add(offset * kQuarter, length * kQuarter);
  if (!batch) return "";
  return fmt::format("{} from {}", batch->length / kQuarter, batch->offset / kQuarter);
}

TEST(DirtyBytes, AreSentInBatchesThatHoldAllThatWasAdded) {
  DirtyBytes dirty;
  EXPECT_EQ(sent(dirty, 5, 1), "");
  EXPECT_EQ(sent(dirty, 7, 1), "");
  EXPECT_EQ(sent(dirty, 4, 1), "");
  EXPECT_EQ(sent(dirty, 6, 1), "4 from 4");
}

TEST(DirtyBytes, OfABatchAreNotSentWithTheNext) {
  DirtyBytes dirty;
  EXPECT_EQ(sent(dirty, 0, 4), "4 from 0");
  EXPECT_EQ(sent(dirty, 4, 3), "");
  EXPECT_EQ(sent(dirty, 7, 2), "5 from 4");
}

}  // namespace
}  // namespace shardwright

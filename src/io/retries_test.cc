// SPDX-License-Identifier: Apache-2.0
#include "io/retries.h"

#include <gtest/gtest.h>

namespace shardwright {
namespace {

TEST(Transfer, EndsWhereACallIsInterruptedForEver) {
  for (const int os_errno : {EINTR, EAGAIN}) {
    int calls = 0;
    const Transfer moved = transfer(10, [&](std::size_t /*done*/) -> ssize_t {
      ++calls;
      errno = os_errno;
      return -1;
    });
    EXPECT_EQ(moved.os_errno, os_errno);
    EXPECT_EQ(moved.done, 0U);
    EXPECT_FALSE(moved.ended);
    EXPECT_GT(calls, 100) << "a few interruptions are nothing";
    EXPECT_LT(calls, 10'000);
  }
}

TEST(Transfer, GoesOnWhileBytesMoveBetweenInterruptions) {
  constexpr std::size_t kTotal = 5000;
  int calls = 0;
  const Transfer moved = transfer(kTotal, [&](std::size_t done) -> ssize_t {
    if (++calls % 2 == 0) {
      errno = EINTR;
      return -1;
    }
    return done < kTotal ? 1 : 0;
  });
  EXPECT_EQ(moved.done, kTotal);
  EXPECT_EQ(moved.os_errno, 0);
}

TEST(Transfer, EndsWhereACallMovesNothing) {
  const Transfer moved = transfer(10, [](std::size_t done) -> ssize_t { return done < 4 ? 4 : 0; });
  EXPECT_EQ(moved.done, 4U);
  EXPECT_TRUE(moved.ended);
  EXPECT_EQ(moved.os_errno, 0);
}

TEST(Transfer, EndsAtOnceWhereACallFails) {
  int calls = 0;
  const Transfer moved = transfer(10, [&](std::size_t /*done*/) -> ssize_t {
    ++calls;
    errno = EIO;
    return -1;
  });
  EXPECT_EQ(moved.os_errno, EIO);
  EXPECT_EQ(calls, 1);
}

}  // namespace
}  // namespace shardwright

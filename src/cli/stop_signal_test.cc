// SPDX-License-Identifier: Apache-2.0
#include "cli/stop_signal.h"

#include <gtest/gtest.h>

#include <csignal>

namespace shardwright::cli {
namespace {

TEST(StopSignal, TurnsTheFirstSignalIntoAFlag) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    const StopSignal stop;
    EXPECT_FALSE(stop.flag());
    EXPECT_EQ(stop.signal(), 0);
    ASSERT_EQ(::raise(signal), 0);
    EXPECT_TRUE(stop.flag());
    EXPECT_EQ(stop.signal(), signal);
  }
}

TEST(StopSignal, TheFirstOfSeveralKindsIsTheReason) {
  const StopSignal stop;
  ASSERT_EQ(::raise(SIGHUP), 0);
  ASSERT_EQ(::raise(SIGTERM), 0);
  EXPECT_EQ(stop.signal(), SIGHUP);
}

TEST(StopSignal, TheSecondOneEndsTheProcess) {
  EXPECT_EXIT(
      {
        const StopSignal stop;
        ::raise(SIGINT);
        ::raise(SIGINT);
      },
      ::testing::KilledBySignal(SIGINT), "");
}

TEST(StopSignal, IgnoredSignalsStayIgnored) {
  const auto before = std::signal(SIGINT, SIG_IGN);
  {
    const StopSignal stop;
    ::raise(SIGINT);
    EXPECT_FALSE(stop.flag());
  }
  EXPECT_EQ(std::signal(SIGINT, before), SIG_IGN);
}

}  // namespace
}  // namespace shardwright::cli

// SPDX-License-Identifier: Apache-2.0
#include "cli/stop_signal.h"

#include <gtest/gtest.h>

#include <array>
#include <csignal>
#include <vector>

namespace shardwright::cli {
namespace {

constexpr std::array kSignals = {SIGINT, SIGTERM, SIGHUP};

// What a shell starts in the background, or behind nohup, inherits signals that are ignored.
class StopSignalTest : public ::testing::Test {
 protected:
  StopSignalTest() {
    for (const int signal : kSignals) before_.push_back(std::signal(signal, SIG_DFL));
  }
  ~StopSignalTest() override {
    for (std::size_t i = 0; i < kSignals.size(); ++i) std::signal(kSignals[i], before_[i]);
  }

 private:
  std::vector<void (*)(int)> before_;
};

TEST_F(StopSignalTest, TurnsTheFirstSignalIntoAFlag) {
  for (const int signal : kSignals) {
    const StopSignal stop;
    EXPECT_FALSE(stop.flag());
    EXPECT_EQ(stop.signal(), 0);
    ASSERT_EQ(::raise(signal), 0);
    EXPECT_TRUE(stop.flag());
    EXPECT_EQ(stop.signal(), signal);
  }
}

TEST_F(StopSignalTest, TheFirstOfSeveralKindsIsTheReason) {
  const StopSignal stop;
  ASSERT_EQ(::raise(SIGHUP), 0);
  ASSERT_EQ(::raise(SIGTERM), 0);
  EXPECT_EQ(stop.signal(), SIGHUP);
}

TEST_F(StopSignalTest, TheSecondOneEndsTheProcess) {
  EXPECT_EXIT(
      {
        const StopSignal stop;
        ::raise(SIGINT);
        ::raise(SIGINT);
      },
      ::testing::KilledBySignal(SIGINT), "");
}

TEST_F(StopSignalTest, IgnoredSignalsStayIgnored) {
  std::signal(SIGINT, SIG_IGN);
  {
    const StopSignal stop;
    ::raise(SIGINT);
    EXPECT_FALSE(stop.flag());
  }
  EXPECT_EQ(std::signal(SIGINT, SIG_DFL), SIG_IGN);
}

}  // namespace
}  // namespace shardwright::cli

// SPDX-License-Identifier: Apache-2.0
#include "io/pending_call.h"

#include <gtest/gtest.h>

#include <optional>
#include <thread>

namespace shardwright {
namespace {

TEST(PendingCall, TheLongestIsKnownWhileItLasts) {
  const std::string first = "in/first";
  const std::string second = "in/second";
  EXPECT_FALSE(longest_call());
  {
    const PendingCall pending("a read", first);
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    std::jthread([&] {
      const PendingCall later("a write", second);
      const auto found = longest_call();
      ASSERT_TRUE(found);
      EXPECT_EQ(found->what, "a read");
      EXPECT_EQ(found->name, "in/first");
      EXPECT_GE(found->time, std::chrono::milliseconds(2));
    }).join();
    EXPECT_EQ(longest_call()->name, "in/first");
  }
  EXPECT_FALSE(longest_call());
}

TEST(PendingCall, MayEndInAnyOrder) {
  const std::string names[] = {"a", "b", "c"};
  std::optional<PendingCall> calls[3];
  for (int i = 0; i < 3; ++i) {
    calls[i].emplace("a read", names[i]);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_EQ(longest_call()->name, "a");
  calls[1].reset();
  EXPECT_EQ(longest_call()->name, "a");
  calls[0].reset();
  EXPECT_EQ(longest_call()->name, "c");
  calls[0].emplace("a read", names[0]);
  EXPECT_EQ(longest_call()->name, "c");
  calls[2].reset();
  EXPECT_EQ(longest_call()->name, "a");
  calls[0].reset();
  EXPECT_FALSE(longest_call());
}

}  // namespace
}  // namespace shardwright

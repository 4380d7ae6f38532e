// SPDX-License-Identifier: Apache-2.0
#include "remote/job_queue.h"

#include <gtest/gtest.h>

#include <atomic>
#include <set>

#include "base/fail.h"

namespace shardwright {
namespace {

TEST(JobQueue, DoesAllOnAFewThreads) {
  JobQueue queue(3);
  EXPECT_TRUE(queue.wait());
  std::atomic<int> done{0};
  std::mutex mutex;
  std::set<std::thread::id> threads;
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(queue.add([&]() -> Status {
      ++done;
      const std::scoped_lock lock(mutex);
      threads.insert(std::this_thread::get_id());
      return {};
    }));
  }
  EXPECT_TRUE(queue.wait());
  EXPECT_EQ(done, 100);
  EXPECT_LE(threads.size(), 3U);
  EXPECT_FALSE(threads.contains(std::this_thread::get_id()));
}

TEST(JobQueue, EndsWithTheFirstFailure) {
  JobQueue queue(1);
  std::atomic<int> done{0};
  Status status;
  for (int i = 0; i < 20 && status; ++i) {
    status = queue.add([&]() -> Status {
      if (++done == 3) return fail(Code::kRemote, "the third");
      return {};
    });
  }
  const Status waited = queue.wait();
  ASSERT_FALSE(waited);
  EXPECT_EQ(waited.error().message, "the third");
  EXPECT_EQ(queue.add([] { return Status(); }).error().message, "the third");
  EXPECT_EQ(done, 3);
}

TEST(JobQueue, WhatIsStoppedIsNotBegun) {
  JobQueue queue(1);
  std::atomic<bool> may_end{false};
  std::atomic<bool> has_begun{false};
  std::atomic<int> done{0};
  ASSERT_TRUE(queue.add([&]() -> Status {
    has_begun = true;
    has_begun.notify_all();
    may_end.wait(false);
    ++done;
    return {};
  }));
  has_begun.wait(false);
  ASSERT_TRUE(queue.add([&]() -> Status {
    ++done;
    return {};
  }));
  std::thread stopping([&] { queue.stop(); });
  // Only what add() says tells that stop() has come so far.
  while (queue.add([] { return Status(); })) std::this_thread::yield();
  may_end = true;
  may_end.notify_all();
  stopping.join();
  EXPECT_EQ(done, 1);
  EXPECT_EQ(queue.add([] { return Status(); }).error().code, Code::kCancelled);
}

}  // namespace
}  // namespace shardwright

// SPDX-License-Identifier: Apache-2.0
#include "exec/threads.h"

#include <gtest/gtest.h>
#include <pthread.h>

#include <atomic>
#include <new>

namespace shardwright {
namespace {

TEST(RunOnThreads, AThreadWithoutMemoryIsAnError) {
  std::atomic<int> calls = 0;
  const Status status = run_on_threads(3, {}, [&]() -> Status {
    if (++calls == 2) throw std::bad_alloc();
    return {};
  });
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Code::kOutOfMemory);
  EXPECT_EQ(calls, 3) << "the others end their work";
}

TEST(RunOnThreads, NoThreadAtAllIsAnError) {
  pthread_attr_t before{};
  pthread_attr_t huge{};
  ASSERT_EQ(::pthread_getattr_default_np(&before), 0);
  ASSERT_EQ(::pthread_attr_init(&huge), 0);
  ASSERT_EQ(::pthread_attr_setstacksize(&huge, std::size_t{1} << 50), 0);
  ASSERT_EQ(::pthread_setattr_default_np(&huge), 0);
  std::atomic<int> calls = 0;
  const Status status = run_on_threads(3, {}, [&]() -> Status {
    ++calls;
    return {};
  });
  ASSERT_EQ(::pthread_setattr_default_np(&before), 0);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Code::kOutOfMemory);
  EXPECT_EQ(calls, 0);
}

}  // namespace
}  // namespace shardwright

// SPDX-License-Identifier: Apache-2.0
#include "base/prepare_ahead.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <latch>
#include <mutex>
#include <new>
#include <set>
#include <thread>
#include <vector>

namespace shardwright {
namespace {

TEST(PrepareAhead, TakesInOrderWhatIsPreparedOnce) {
  constexpr std::size_t kCount = 300;
  std::vector<std::atomic<int>> prepared(kCount);
  std::vector<std::size_t> taken;
  const auto here = std::this_thread::get_id();
  ASSERT_TRUE(prepare_ahead(
      kCount,
      [&](std::size_t i) {
        // Those that began first end last.
        if (i % 8 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
        ++prepared[i];
      },
      [&](std::size_t i) -> Status {
        EXPECT_EQ(prepared[i], 1);
        EXPECT_EQ(std::this_thread::get_id(), here);
        taken.push_back(i);
        return {};
      }));
  EXPECT_EQ(taken.size(), kCount);
  EXPECT_TRUE(std::ranges::is_sorted(taken));
}

// One by one, the first would wait for ever.
TEST(PrepareAhead, PreparesSideBySide) {
  std::latch all(4);
  EXPECT_TRUE(prepare_ahead(
      4, [&](std::size_t) { all.arrive_and_wait(); }, [](std::size_t) -> Status { return {}; }));
}

TEST(PrepareAhead, IsNotFarAhead) {
  std::atomic<std::size_t> taken = 0;
  std::atomic<std::size_t> farthest = 0;
  ASSERT_TRUE(prepare_ahead(
      1000,
      [&](std::size_t i) {
        const std::size_t ahead = i - std::min<std::size_t>(i, taken);
        for (std::size_t most = farthest; ahead > most;) {
          if (farthest.compare_exchange_weak(most, ahead)) break;
        }
      },
      [&](std::size_t i) -> Status {
        taken = i;
        return {};
      }));
  EXPECT_LE(farthest, 33U);
}

TEST(PrepareAhead, EndsWithTheFirstError) {
  std::atomic<std::size_t> last = 0;
  const Status status = prepare_ahead(
      1000, [&](std::size_t i) { last = std::max<std::size_t>(last, i); },
      [](std::size_t i) -> Status {
        if (i < 5) return {};
        return std::unexpected(Error{Code::kIo, "five", 0});
      });
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().message, "five");
  EXPECT_LT(last, 100U);
}

TEST(PrepareAhead, NoMemoryIsAnErrorInItsPlace) {
  std::size_t taken = 0;
  const Status status = prepare_ahead(
      10,
      [](std::size_t i) {
        if (i == 3) throw std::bad_alloc();
      },
      [&](std::size_t) -> Status {
        ++taken;
        return {};
      });
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Code::kOutOfMemory);
  EXPECT_EQ(taken, 3U);
}

TEST(PrepareAhead, NothingAndOne) {
  const auto count = [](std::size_t of) {
    std::size_t taken = 0;
    EXPECT_TRUE(prepare_ahead(
        of, [](std::size_t) {},
        [&](std::size_t) -> Status {
          ++taken;
          return {};
        }));
    return taken;
  };
  EXPECT_EQ(count(0), 0U);
  EXPECT_EQ(count(1), 1U);
}

}  // namespace
}  // namespace shardwright

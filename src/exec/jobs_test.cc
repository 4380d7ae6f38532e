// SPDX-License-Identifier: Apache-2.0
#include "exec/jobs.h"

#include <gtest/gtest.h>

#include <mutex>
#include <set>

#include "base/fail.h"

namespace shardwright {
namespace {

Workers threads(int count) {
  Workers workers;
  workers.threads = count;
  return workers;
}

TEST(Jobs, GiveWhatEachFoundInTheirOrder) {
  const std::vector<std::uint64_t> bytes(100, 7);
  for (const int count : {1, 4}) {
    std::uint64_t told = 0;
    Workers workers = threads(count);
    workers.on_progress = [&](std::uint64_t done) { told = done; };
    const auto found = run_jobs({"counting", bytes}, workers, [] {
      return [](std::size_t job) -> Result<JobResult> { return JobResult{std::to_string(job)}; };
    });
    ASSERT_EQ(found.value().size(), 100U);
    for (std::size_t job = 0; job < 100; ++job) EXPECT_EQ((*found)[job], std::to_string(job));
    EXPECT_EQ(told, 700U);
  }
}

TEST(Jobs, NothingIsFoundBehindTheLast) {
  const std::vector<std::uint64_t> bytes(50, 1);
  for (const int count : {1, 4}) {
    std::mutex mutex;
    std::set<std::size_t> done;
    const auto found = run_jobs({"looking", bytes}, threads(count), [&] {
      return [&](std::size_t job) -> Result<JobResult> {
        const std::scoped_lock lock(mutex);
        done.insert(job);
        return JobResult{"x", job == 20 || job == 22};
      };
    });
    for (std::size_t job = 0; job < 50; ++job) EXPECT_EQ((*found)[job].empty(), job > 20) << job;
    for (std::size_t job = 0; job <= 20; ++job) EXPECT_TRUE(done.contains(job));
    EXPECT_LT(done.size(), 50U);
  }
}

TEST(Jobs, EndWithTheErrorOfOne) {
  const std::vector<std::uint64_t> bytes(50, 1);
  const auto found = run_jobs({"failing", bytes}, threads(3), [] {
    return [](std::size_t job) -> Result<JobResult> {
      if (job == 7) return fail(Code::kIo, "a: cannot read");
      return JobResult{};
    };
  });
  EXPECT_EQ(found.error().message, "a: cannot read");
}

TEST(Jobs, StopWhenTheyAreToldTo) {
  const std::vector<std::uint64_t> bytes(1000, 1);
  std::atomic<bool> cancelled{false};
  Workers workers = threads(2);
  workers.cancelled = &cancelled;
  const auto found = run_jobs({"going on", bytes}, workers, [&] {
    return [&](std::size_t job) -> Result<JobResult> {
      if (job == 5) cancelled = true;
      return JobResult{};
    };
  });
  EXPECT_EQ(found.error().code, Code::kCancelled);
}

TEST(Jobs, AStatusGoesThereAndBack) {
  const Defects first;
  const Defects all(Defects::Policy::kCollect);
  EXPECT_TRUE(status_in(result_of({}, first).value().bytes).value());
  const JobResult result = result_of(fail(Code::kReplicasDiffer, "differ"), first).value();
  EXPECT_TRUE(result.is_last);
  EXPECT_FALSE(result_of(fail(Code::kReplicasDiffer, "differ"), all).value().is_last);
  EXPECT_EQ(status_in(result.bytes).value().error().message, "differ");
  EXPECT_EQ(result_of(fail(Code::kIo, "a: cannot read"), all).error().code, Code::kIo);
  EXPECT_EQ(status_in("x").error().code, Code::kInternal);
}

}  // namespace
}  // namespace shardwright

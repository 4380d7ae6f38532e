// SPDX-License-Identifier: Apache-2.0
// Jobs of several ranks, which are threads here.
#include "convert/rank_jobs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <numeric>
#include <thread>

#include "base/fail.h"
#include "comm/thread_ranks.h"

namespace shardwright {
namespace {

using testing::HasSubstr;

constexpr std::size_t kManyJobs = 200;

using Found = std::vector<std::string>;
// What a rank does with its jobs.
using RankWork = std::function<Result<Found>(RankSession&, JobSharing&)>;

struct EndedRanks {
  std::vector<Found> found;
  std::vector<Result<int>> status;
};

EndedRanks run_ranks_with_jobs(int size, const RankWork& work) {
  ThreadRanks ranks(size);
  EndedRanks ended{std::vector<Found>(static_cast<std::size_t>(size)),
                   std::vector<Result<int>>(static_cast<std::size_t>(size), 99)};
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      const auto communicator = ranks.communicator(rank);
      SessionOptions options;
      options.timeout = std::chrono::seconds(30);
      RankSession session(*communicator, options);
      const auto jobs = jobs_of_ranks(session);
      const Status status = session.run([&]() -> Status {
        ended.found[static_cast<std::size_t>(rank)] = SW_TRY(work(session, *jobs));
        return {};
      });
      ended.status[static_cast<std::size_t>(rank)] =
          session.settle(status ? Result<int>(0) : Result<int>(std::unexpected(status.error())));
    });
  }
  threads.clear();
  return ended;
}

Workers with(RankSession& session, JobSharing& jobs, int threads = 2) {
  Workers workers;
  workers.threads = threads;
  workers.sharing = &jobs;
  workers.cancelled = &session.stopped();
  return workers;
}

JobWorker telling_numbers(std::size_t last = kManyJobs) {
  return [last](std::size_t job) -> Result<JobResult> {
    return JobResult{std::to_string(job), job == last};
  };
}

TEST(RankJobs, AllKnowWhatEachJobFound) {
  std::vector<std::uint64_t> bytes(kManyJobs);
  std::iota(bytes.begin(), bytes.end(), 1U << 20);
  for (const int ranks : {1, 2, 3, 8}) {
    std::atomic<int> done{0};
    const auto ended = run_ranks_with_jobs(ranks, [&](RankSession& session, JobSharing& jobs) {
      return run_jobs({"counting", bytes}, with(session, jobs), [&] {
        return [&](std::size_t job) -> Result<JobResult> {
          ++done;
          return JobResult{std::to_string(job)};
        };
      });
    });
    EXPECT_EQ(done, kManyJobs) << ranks;
    for (const Found& found : ended.found) {
      ASSERT_EQ(found.size(), kManyJobs);
      for (std::size_t job = 0; job < kManyJobs; ++job) EXPECT_EQ(found[job], std::to_string(job));
    }
  }
}

TEST(RankJobs, StepsFollowEachOtherWithoutWaitingForTheSlowest) {
  const std::vector<std::uint64_t> bytes(40, 1);
  const auto ended = run_ranks_with_jobs(3, [&](RankSession& session, JobSharing& jobs) {
    Found all;
    for (int step = 0; step < 20; ++step) {
      if (step % 3 == session.rank()) std::this_thread::sleep_for(std::chrono::milliseconds(5));
      const std::string name = "step " + std::to_string(step);
      const auto found =
          run_jobs({name, bytes}, with(session, jobs), [] { return telling_numbers(); });
      if (!found) return found;
      all.insert(all.end(), found->begin(), found->end());
    }
    return Result<Found>(all);
  });
  for (const Found& found : ended.found) EXPECT_EQ(found.size(), 800U);
  for (const auto& status : ended.status) EXPECT_TRUE(status) << status.error().text();
}

TEST(RankJobs, NothingIsFoundBehindTheLastWhoeverFoundIt) {
  const std::vector<std::uint64_t> bytes(kManyJobs, 1U << 20);
  for (const std::size_t last : {3, 120}) {
    const auto ended = run_ranks_with_jobs(3, [&](RankSession& session, JobSharing& jobs) {
      return run_jobs({"looking", bytes}, with(session, jobs),
                      [&] { return telling_numbers(last); });
    });
    for (const Found& found : ended.found) {
      for (std::size_t job = 0; job < kManyJobs; ++job) EXPECT_EQ(found[job].empty(), job > last);
    }
  }
}

TEST(RankJobs, ARankBeginsWithNeighbours) {
  const std::vector<std::uint64_t> bytes(kManyJobs, std::uint64_t{16} << 20);
  std::vector<std::vector<std::size_t>> taken(2);
  run_ranks_with_jobs(2, [&](RankSession& session, JobSharing& jobs) {
    auto& own = taken[static_cast<std::size_t>(session.rank())];
    return run_jobs({"reading", bytes}, with(session, jobs, 1), [&] {
      return [&](std::size_t job) -> Result<JobResult> {
        own.push_back(job);
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        return JobResult{};
      };
    });
  });
  ASSERT_GT(taken[1].size(), 10U);
  for (std::size_t i = 0; i < 10; ++i) EXPECT_EQ(taken[1][i], kManyJobs / 2 + i);
}

TEST(RankJobs, WhatASlowRankHasLeftIsDoneByTheOthers) {
  const std::vector<std::uint64_t> bytes(kManyJobs, std::uint64_t{64} << 20);
  std::atomic<int> by_slow{0};
  run_ranks_with_jobs(3, [&](RankSession& session, JobSharing& jobs) {
    const bool is_slow = session.rank() == 2;
    return run_jobs({"reading", bytes}, with(session, jobs, 1), [&, is_slow] {
      return [&, is_slow](std::size_t) -> Result<JobResult> {
        std::this_thread::sleep_for(std::chrono::milliseconds(is_slow ? 300 : 1));
        by_slow += is_slow ? 1 : 0;
        return JobResult{};
      };
    });
  });
  EXPECT_LT(by_slow, 30);
}

TEST(RankJobs, WhoHasOtherJobsIsRefused) {
  const auto ended = run_ranks_with_jobs(3, [&](RankSession& session, JobSharing& jobs) {
    const std::vector<std::uint64_t> bytes(10, session.rank() == 2 ? 5 : 6);
    return run_jobs({"reading the tensors", bytes}, with(session, jobs),
                    [] { return telling_numbers(); });
  });
  for (const auto& status : ended.status) EXPECT_EQ(status.error().code, Code::kRanksDiffer);
  EXPECT_THAT(ended.status[0].error().message,
              HasSubstr("reading the tensors: rank 2 sees other things than rank 0"));
}

TEST(RankJobs, AnErrorOfOneEndsAll) {
  const std::vector<std::uint64_t> bytes(kManyJobs, 1U << 20);
  const auto ended = run_ranks_with_jobs(3, [&](RankSession& session, JobSharing& jobs) {
    return run_jobs({"reading", bytes}, with(session, jobs), [&session] {
      return [&session](std::size_t) -> Result<JobResult> {
        if (session.rank() == 1) return fail(Code::kIo, "a: cannot read");
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        return JobResult{};
      };
    });
  });
  for (const auto& status : ended.status) EXPECT_EQ(status.error().code, Code::kIo);
  EXPECT_EQ(ended.status[0].error().message, "rank 1: a: cannot read");
}

TEST(RankJobs, WhatOneRankAloneHasSeenEndsAll) {
  const auto ended =
      run_ranks_with_jobs(3, [](RankSession& session, JobSharing& jobs) -> Result<Found> {
        SW_TRY(wait_for_ranks(&jobs, session.rank() == 1 ? "a hole" : "nothing"));
        return Found();
      });
  for (const auto& status : ended.status) EXPECT_EQ(status.error().code, Code::kRanksDiffer);
}

TEST(RankJobs, WaitingMeansThatAllHaveComeSoFar) {
  std::atomic<int> came{0};
  run_ranks_with_jobs(3, [&](RankSession& session, JobSharing& jobs) -> Result<Found> {
    std::this_thread::sleep_for(std::chrono::milliseconds(20 * session.rank()));
    ++came;
    SW_TRY(wait_for_ranks(&jobs, "the same"));
    EXPECT_EQ(came, 3);
    return Found();
  });
  EXPECT_TRUE(wait_for_ranks(nullptr, ""));
}

}  // namespace
}  // namespace shardwright

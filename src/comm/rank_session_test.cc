// SPDX-License-Identifier: Apache-2.0
// What ranks that are threads tell each other, and what each of them ends with.
#include "comm/rank_session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <future>
#include <new>
#include <optional>
#include <thread>

#include "base/fail.h"
#include "comm/thread_ranks.h"

namespace shardwright {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;
using testing::Not;

constexpr milliseconds kTimeout{400};

SessionOptions options_of(int rank) {
  SessionOptions options;
  options.timeout = kTimeout;
  options.beat = milliseconds(20);
  options.patience = milliseconds(200);
  options.host = "host" + std::to_string(rank);
  options.request = "convert";
  return options;
}

// Runs `work` as each rank and gives what settle() said to each.
std::vector<Result<int>> run_ranks(ThreadRanks& ranks, int size,
                                   const std::function<Result<int>(RankSession&)>& work,
                                   const std::function<void(int, SessionOptions&)>& change = {}) {
  std::vector<Result<int>> results(static_cast<std::size_t>(size), 99);
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      const auto communicator = ranks.communicator(rank);
      SessionOptions options = options_of(rank);
      if (change) change(rank, options);
      RankSession session(*communicator, std::move(options));
      results[static_cast<std::size_t>(rank)] = session.settle(work(session));
    });
  }
  threads.clear();
  return results;
}

Result<int> status_of(const Status& status) {
  if (!status) return std::unexpected(status.error());
  return 0;
}

TEST(RankSession, AllEndWithTheStatusOfRankZero) {
  ThreadRanks ranks(3);
  const auto results =
      run_ranks(ranks, 3, [](RankSession& session) { return session.is_first() ? 1 : 0; });
  for (const auto& result : results) EXPECT_EQ(result.value(), 1);
  EXPECT_EQ(ranks.abort_status(), -1);
}

TEST(RankSession, LongSilentWorkIsNoLostRank) {
  ThreadRanks ranks(3);
  const auto results = run_ranks(ranks, 3, [](RankSession& session) {
    return status_of(session.run([&]() -> Status {
      if (session.rank() < 2) std::this_thread::sleep_for(3 * kTimeout);
      return {};
    }));
  });
  for (const auto& result : results) EXPECT_EQ(result.value(), 0);
}

TEST(RankSession, AnErrorOfOneRankEndsAllAndNamesIt) {
  ThreadRanks ranks(4);
  const auto results = run_ranks(ranks, 4, [](RankSession& session) {
    return status_of(session.run([&]() -> Status {
      if (session.rank() == 2) return fail(Code::kDiskFull, "out: no space");
      while (!session.stopped()) std::this_thread::sleep_for(milliseconds(1));
      return fail(Code::kCancelled, "told to stop");
    }));
  });
  for (const auto& result : results) EXPECT_EQ(result.error().code, Code::kDiskFull);
  EXPECT_THAT(results[0].error().message, "rank 2 on host2: out: no space");
  EXPECT_EQ(ranks.abort_status(), -1);
}

TEST(RankSession, AnErrorOfRankZeroEndsTheOthers) {
  ThreadRanks ranks(2);
  const auto results = run_ranks(ranks, 2, [](RankSession& session) -> Result<int> {
    if (session.is_first()) return fail(Code::kNotFound, "in: not there");
    return status_of(session.run([&]() -> Status {
      while (!session.stopped()) std::this_thread::sleep_for(milliseconds(1));
      return {};
    }));
  });
  for (const auto& result : results) EXPECT_EQ(result.error().code, Code::kNotFound);
}

TEST(RankSession, WhatRankZeroAddsToTheErrorIsKept) {
  ThreadRanks ranks(2);
  const auto results = run_ranks(ranks, 2, [](RankSession& session) -> Result<int> {
    const Status status = session.run([&]() -> Status {
      if (session.rank() == 1) return fail(Code::kDiskFull, "out: no space");
      while (!session.stopped()) std::this_thread::sleep_for(milliseconds(1));
      return fail(Code::kCancelled, "told to stop");
    });
    Error error = status.error();
    if (session.is_first()) error.message += "; what is written is kept";
    return std::unexpected(std::move(error));
  });
  EXPECT_EQ(results[0].error().code, Code::kDiskFull);
  EXPECT_EQ(results[0].error().message, "rank 1 on host1: out: no space; what is written is kept");
}

// A launcher that loses a rank signals the others, and kills them a second later: by then rank 0
// must have said what it leaves.
TEST(RankSession, AfterASignalNobodyIsWaitedForLong) {
  ThreadRanks ranks(2);
  const auto communicator = ranks.communicator(0);  // of rank 1 nothing is heard
  SessionOptions options = options_of(0);
  options.timeout = options.patience = std::chrono::minutes(1);
  RankSession session(*communicator, std::move(options));
  const std::atomic<bool> interrupted{true};
  session.obey(&interrupted);
  const Status status = session.run([&]() -> Status {
    while (!session.stopped()) std::this_thread::sleep_for(milliseconds(1));
    session.wait_until_others_stopped();
    return fail(Code::kCancelled, "told to stop");
  });
  session.obey(nullptr);  // what handles signals ends with the work
  const auto begin = std::chrono::steady_clock::now();
  const auto settled = session.settle(std::unexpected(status.error()));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(30));
  EXPECT_EQ(settled.error().code, Code::kCancelled);
  EXPECT_TRUE(session.must_abort());
}

// A call of the system that takes long cannot be stopped: what it leaves is said while there is
// time.
TEST(RankSession, AfterASignalACallThatGoesOnIsNotWaitedForLong) {
  ThreadRanks ranks(2);
  const auto communicator = ranks.communicator(0);  // of rank 1 nothing is heard
  std::atomic<bool> is_aborted{false};
  std::string last_words;
  SessionOptions options = options_of(0);
  options.timeout = options.patience = std::chrono::minutes(1);
  options.last_words = [&](const Error& error) {
    last_words = error.message;
    is_aborted = true;
  };
  RankSession session(*communicator, std::move(options));
  session.set_leftover("/out/.x.partial-1-0");
  const std::atomic<bool> interrupted{true};
  session.obey(&interrupted);
  const auto begin = std::chrono::steady_clock::now();
  const auto in_time = [&] {
    return std::chrono::steady_clock::now() - begin < std::chrono::seconds(30);
  };
  const Status status = session.run([&]() -> Status {
    while (!is_aborted && in_time()) std::this_thread::sleep_for(milliseconds(1));
    return fail(Code::kCancelled, "told to stop");
  });
  session.obey(nullptr);
  EXPECT_TRUE(in_time());
  EXPECT_EQ(status.error().code, Code::kCancelled);
  EXPECT_THAT(last_words, HasSubstr("remove what is left of /out/.x.partial-1-0"));
  EXPECT_EQ(ranks.abort_status(), 2);
}

TEST(RankSession, WhoWasAskedForSomethingElseIsRefused) {
  ThreadRanks ranks(3);
  const auto results = run_ranks(
      ranks, 3,
      [](RankSession& session) {
        return status_of(session.run([&]() -> Status {
          while (!session.stopped()) std::this_thread::sleep_for(milliseconds(1));
          return fail(Code::kCancelled, "told to stop");
        }));
      },
      [](int rank, SessionOptions& options) {
        if (rank == 1) options.request = "verify";
      });
  for (const auto& result : results) EXPECT_EQ(result.error().code, Code::kRanksDiffer);
  EXPECT_THAT(results[0].error().message, HasSubstr("rank 1 on host1 was started with other"));
}

TEST(RankSession, ARankThatHangsIsNamed) {
  ThreadRanks ranks(3);
  bool must_abort = false;
  const auto results = run_ranks(ranks, 3, [&](RankSession& session) -> Result<int> {
    if (session.rank() == 1) {
      std::this_thread::sleep_for(4 * kTimeout);
      return 0;
    }
    auto result = status_of(session.run([&]() -> Status {
      while (!session.stopped()) std::this_thread::sleep_for(milliseconds(1));
      session.wait_until_others_stopped();
      return fail(Code::kCancelled, "told to stop");
    }));
    if (!session.is_first()) return result;
    auto settled = session.settle(result);
    must_abort = session.must_abort();
    return settled;
  });
  EXPECT_EQ(results[0].error().code, Code::kRankLost);
  EXPECT_THAT(results[0].error().message, HasSubstr("rank 1"));
  EXPECT_TRUE(must_abort);
  EXPECT_EQ(results[2].error().code, Code::kRankLost);
}

TEST(RankSession, WorkThatHangsInARankThatTalksEndsAll) {
  ThreadRanks ranks(3);
  const auto results = run_ranks(
      ranks, 3,
      [](RankSession& session) {
        return status_of(session.run([&]() -> Status {
          while (!session.stopped()) std::this_thread::sleep_for(milliseconds(1));
          return {};
        }));
      },
      [](int rank, SessionOptions& options) {
        if (rank != 1) return;
        options.find_hung = []() -> std::optional<Error> {
          return Error{Code::kRankLost, "in/a: a read has not returned", 0};
        };
      });
  for (const auto& result : results) EXPECT_EQ(result.error().code, Code::kRankLost);
  EXPECT_EQ(results[0].error().message, "rank 1 on host1: in/a: a read has not returned");
}

// What rank 1 says in the end.
std::string last_words_where_rank_zero_hangs(const std::function<std::string()>& withdraw = {}) {
  ThreadRanks ranks(2);
  std::string last_words;
  const auto results = run_ranks(
      ranks, 2,
      [&](RankSession& session) -> Result<int> {
        if (session.is_first()) {
          std::this_thread::sleep_for(3 * kTimeout);
          return 0;
        }
        session.set_leftover("/out/.x.partial-1-0");
        if (withdraw) session.set_withdrawal(withdraw);
        return status_of(session.run([&]() -> Status {
          while (!session.stopped()) std::this_thread::sleep_for(milliseconds(1));
          return fail(Code::kCancelled, "told to stop");
        }));
      },
      [&](int rank, SessionOptions& options) {
        if (rank == 1) options.last_words = [&](const Error& error) { last_words = error.message; };
      });
  EXPECT_EQ(results[1].error().code, Code::kRankLost);
  EXPECT_EQ(ranks.abort_status(), 2);
  EXPECT_THAT(last_words, HasSubstr("rank 0"));
  return last_words;
}

TEST(RankSession, WhereRankZeroHangsTheOthersNameWhatIsLeft) {
  EXPECT_THAT(last_words_where_rank_zero_hangs(),
              HasSubstr("remove what is left of /out/.x.partial-1-0"));
}

TEST(RankSession, WhereRankZeroHangsItsOutputIsTakenAway) {
  EXPECT_THAT(last_words_where_rank_zero_hangs([] { return "/out/.x.partial-2-0"; }),
              HasSubstr("remove what is left of /out/.x.partial-2-0"));
  EXPECT_THAT(last_words_where_rank_zero_hangs([] { return ""; }), Not(HasSubstr("remove")));
}

TEST(RankSession, WhatTakesTheOutputAwayMayHangOrFail) {
  std::promise<void> over;
  const std::shared_future<void> end(over.get_future());
  EXPECT_THAT(last_words_where_rank_zero_hangs([end] {
                end.wait();
                return "";
              }),
              HasSubstr("remove what is left of /out/.x.partial-1-0"));
  over.set_value();
  EXPECT_THAT(last_words_where_rank_zero_hangs([]() -> std::string { throw std::bad_alloc(); }),
              HasSubstr("remove what is left of /out/.x.partial-1-0"));
}

// As where a launcher ends the ranks that are left.
TEST(RankSession, WhereRankZeroIsGoneOneOfTheOthersNamesWhatIsLeft) {
  ThreadRanks ranks(3);
  const std::atomic<bool> signal{true};
  std::array<std::string, 3> last_words;
  std::atomic<bool> is_said{false};
  bool was_heard_out = false;
  run_ranks(
      ranks, 3,
      [&](RankSession& session) -> Result<int> {
        if (session.is_first()) {
          std::this_thread::sleep_for(3 * kTimeout);
          return 0;
        }
        session.obey(&signal);
        session.set_leftover("/out/.x.partial-1-0");
        // Whoever speaks is the last to notice.
        if (session.rank() == 1) std::this_thread::sleep_for(milliseconds(100));
        Result<int> settled = session.settle(fail(Code::kCancelled, "told to stop"));
        if (session.rank() == 2) was_heard_out = is_said;
        return settled;
      },
      [&](int rank, SessionOptions& options) {
        options.timeout = std::chrono::minutes(1);
        options.last_words = [&, rank](const Error& error) {
          last_words[static_cast<std::size_t>(rank)] = error.message;
          is_said = true;
        };
      });
  EXPECT_THAT(
      last_words,
      testing::ElementsAre("", "rank 0 has ended; remove what is left of /out/.x.partial-1-0", ""));
  EXPECT_TRUE(was_heard_out) << "the launcher would have killed rank 1 before it spoke";
}

TEST(RankSession, MessagesWaitForTheirReceiver) {
  ThreadRanks ranks(2);
  std::string heard;
  const auto results = run_ranks(ranks, 2, [&](RankSession& session) {
    return status_of(session.run([&]() -> Status {
      if (!session.is_first()) {
        session.send(0, Channel::kJobs, "a");
        session.send(0, Channel::kJobs, "b");
        return {};
      }
      std::this_thread::sleep_for(milliseconds(100));
      std::atomic<int> count{0};
      session.on_message(Channel::kJobs, [&](int from, std::string_view bytes) -> Status {
        heard += std::to_string(from) + std::string(bytes);
        ++count;
        return {};
      });
      while (count < 2) std::this_thread::sleep_for(milliseconds(1));
      return {};
    }));
  });
  EXPECT_EQ(results[0].value(), 0);
  EXPECT_EQ(heard, "1a1b");
}

TEST(RankSession, ASignalStopsAll) {
  ThreadRanks ranks(2);
  const std::atomic<bool> signal{true};
  const auto results = run_ranks(ranks, 2, [&](RankSession& session) {
    if (session.rank() == 1) session.obey(&signal);
    return status_of(session.run([&]() -> Status {
      while (!session.stopped()) std::this_thread::sleep_for(milliseconds(1));
      return fail(Code::kCancelled, "told to stop");
    }));
  });
  for (const auto& result : results) EXPECT_EQ(result.error().code, Code::kCancelled);
}

// From when everything is durable on, only rank 0 can fail.
TEST(RankSession, WhoIsReleasedCannotFailTheRest) {
  ThreadRanks ranks(2);
  const auto results = run_ranks(ranks, 2, [&](RankSession& session) -> Result<int> {
    if (!session.is_first()) return fail(Code::kIo, "too late to matter");
    session.release_others();
    return status_of(session.run([&]() -> Status {
      std::this_thread::sleep_for(2 * kTimeout);
      return session.stopped() ? Status(fail(Code::kCancelled, "told to stop")) : Status();
    }));
  });
  EXPECT_EQ(results[0].value(), 0);
}

/// Rank 0, whose process is stopped for a while: it neither hears nor says anything.
class StoppedRank final : public Communicator {
 public:
  explicit StoppedRank(std::unique_ptr<Communicator> inner) : inner_(std::move(inner)) {}

  void stop_for(milliseconds time) { stop_ = time; }
  [[nodiscard]] int rank() const override { return inner_->rank(); }
  [[nodiscard]] int size() const override { return inner_->size(); }
  [[nodiscard]] Status send(int to, std::string bytes) override {
    return inner_->send(to, std::move(bytes));
  }
  [[nodiscard]] Result<std::optional<ReceivedMessage>> receive() override {
    std::this_thread::sleep_for(stop_.exchange(milliseconds(0)));
    return inner_->receive();
  }
  [[nodiscard]] Result<bool> has_sent_all() override { return inner_->has_sent_all(); }
  void abort(int exit_status) override { inner_->abort(exit_status); }

 private:
  std::unique_ptr<Communicator> inner_;
  std::atomic<milliseconds> stop_{milliseconds(0)};
};

// Does `work` as each of three ranks that may be stopped, and gives what settle() said to each.
std::vector<Result<int>> run_stoppable(
    const std::function<Status(StoppedRank&, RankSession&)>& work) {
  ThreadRanks ranks(3);
  std::vector<Result<int>> ends(3, 99);
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < 3; ++rank) {
    threads.emplace_back([&, rank] {
      StoppedRank communicator(ranks.communicator(rank));
      RankSession session(communicator, options_of(rank));
      const Status status = session.run([&] { return work(communicator, session); });
      ends[static_cast<std::size_t>(rank)] = session.settle(status_of(status));
    });
  }
  threads.clear();
  return ends;
}

struct Confirmed {
  std::vector<Status> by_rank_0;  // each time that it asked
  std::vector<Result<int>> ends;
};

// The first rank is stopped so long and confirms twice.
Confirmed confirm_after(milliseconds stop, bool is_interrupted) {
  std::atomic<bool> interrupted{false};
  std::vector<Status> by_rank_0;
  auto ends = run_stoppable([&](StoppedRank& communicator, RankSession& session) -> Status {
    if (!session.is_first()) return {};
    session.release_others();
    session.obey(&interrupted);
    communicator.stop_for(stop);
    std::this_thread::sleep_for(stop + milliseconds(50));
    interrupted = is_interrupted;
    for (int i = 0; i < 2; ++i) by_rank_0.push_back(session.confirm());
    session.obey(nullptr);
    return by_rank_0.front();
  });
  return {std::move(by_rank_0), std::move(ends)};
}

// As a scheduler does with jobs that give way to others.
TEST(RankSession, ThoseThatArePausedTogetherGoOn) {
  const auto ends = run_stoppable([](StoppedRank& communicator, RankSession& session) {
    communicator.stop_for(2 * kTimeout);
    std::this_thread::sleep_for(3 * kTimeout);
    return session.is_first() ? session.confirm() : Status();
  });
  for (const auto& end : ends) EXPECT_EQ(end.value_or(-1), 0);
}

TEST(RankSession, RankZeroGoesOnAfterAPauseWhereTheOthersAreStillThere) {
  // Without a pause nobody is asked, so nobody waits.
  for (const auto& status : confirm_after(milliseconds(0), true).by_rank_0) EXPECT_TRUE(status);
  const Confirmed confirmed = confirm_after(kTimeout * 7 / 10, false);
  for (const auto& status : confirmed.by_rank_0) EXPECT_TRUE(status) << status.error().message;
  for (const auto& end : confirmed.ends) EXPECT_EQ(end.value(), 0);
}

TEST(RankSession, RankZeroThatTheOthersTookForLostIsTold) {
  const Confirmed confirmed = confirm_after(3 * kTimeout, false);
  for (const Status& status : confirmed.by_rank_0) {
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code, Code::kRankLost);
    EXPECT_THAT(status.error().message, HasSubstr("the others took it for lost"));
  }
  EXPECT_EQ(confirmed.ends[0].error().code, Code::kRankLost);
}

TEST(RankSession, WhereThereIsNoTimeToAskAPauseIsEnough) {
  ThreadRanks ranks(1);
  StoppedRank communicator(ranks.communicator(0));
  RankSession session(communicator, options_of(0));
  const Status status = session.run([&]() -> Status {
    EXPECT_TRUE(session.check_heard());
    communicator.stop_for(kTimeout * 7 / 10);
    std::this_thread::sleep_for(kTimeout * 8 / 10);
    EXPECT_EQ(session.check_heard().error().code, Code::kRankLost);
    EXPECT_TRUE(session.confirm()) << "there are no others";
    return session.check_heard();
  });
  EXPECT_TRUE(status);
}

// As a launcher does that ends a job: it continues what is stopped, and signals it.
TEST(RankSession, WhoIsToldToEndAfterAPauseWaitsForNoAnswer) {
  for (const Status& status : confirm_after(kTimeout * 7 / 10, true).by_rank_0) {
    EXPECT_FALSE(status);
  }
}

}  // namespace
}  // namespace shardwright

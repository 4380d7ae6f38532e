// SPDX-License-Identifier: Apache-2.0
#include "convert/rank_jobs.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <limits>
#include <mutex>
#include <utility>

#include "base/digest.h"
#include "base/fail.h"
#include "base/message.h"
#include "convert/piece_shares.h"

namespace shardwright {
namespace {

// What the ranks tell each other about jobs: the first byte of a message. The number of the step
// follows.
enum class JobMessage : std::uint8_t {
  kReady = 'r',   // to rank 0: a rank has come to a step; what it has to do, its threads
  kDone = 'd',    // to rank 0: a job, whether it is the last, what it found
  kJobs = 'j',    // of rank 0: jobs to be done
  kNoMore = 'n',  // of rank 0: there will be no others
  kEnd = 'e',     // of rank 0: what all have found: jobs, and what of them
};

// A rank has so much in advance, so that it works while it asks.
constexpr std::uint64_t kJobsAheadBytes = std::uint64_t{32} << 20;
constexpr std::uint32_t kJobsAhead = 2;  // besides one for each thread
constexpr auto kJobPause = std::chrono::milliseconds(20);

MessageWriter job_message(JobMessage kind, std::uint64_t step) {
  MessageWriter message(static_cast<std::uint8_t>(kind));
  message.number(step);
  return message;
}

// Equal for ranks that have the same to do.
std::string summary_of(const JobStep& step) {
  Digest digest;
  digest.add(step.name);
  digest.add(std::as_bytes(step.bytes));
  digest.add(step.seen);
  return digest.text();
}

Status check_count(const JobStep& step) {
  if (step.bytes.size() < std::numeric_limits<std::uint32_t>::max()) return {};
  return fail(Code::kLimit, "{}: found {} jobs, expected fewer than 2^32", step.name,
              step.bytes.size());
}

// What the jobs of both sides have in common.
class RankJobs : public JobSharing {
 public:
  RankJobs(RankSession& session, SharedReading* reading) : session_(session), reading_(reading) {}

  void close() override {
    const std::scoped_lock lock(mutex_);
    is_closed_ = true;
    changed_.notify_all();
  }

 protected:
  // Error: kCancelled when all are to stop.
  template <class Condition>
  Status wait(std::unique_lock<std::mutex>& lock, const Condition& condition) {
    while (!condition()) {
      if (is_closed_ || session_.stopped()) {
        return fail(Code::kCancelled, "stopped before everything was read");
      }
      changed_.wait_for(lock, kJobPause);
    }
    return {};
  }
  void send(int to, MessageWriter& message) { session_.send(to, Channel::kJobs, message.take()); }

  // Planning is over once there are jobs.
  void end_reading() {
    if (reading_ != nullptr) reading_->end();
  }

  RankSession& session_;
  SharedReading* reading_;
  std::mutex mutex_;  // of what follows, and of what the heirs have
  std::condition_variable changed_;
  std::uint64_t step_ = 0;
  bool is_closed_ = false;
};

class LedJobs final : public RankJobs {
 public:
  LedJobs(RankSession& session, SharedReading* reading)
      : RankJobs(session, reading), ranks_(static_cast<std::size_t>(session.size())) {
    session_.on_message(Channel::kJobs,
                        [this](int from, std::string_view bytes) { return take_in(from, bytes); });
  }
  ~LedJobs() override { session_.on_message(Channel::kJobs, {}); }
  LedJobs(const LedJobs&) = delete;
  LedJobs& operator=(const LedJobs&) = delete;

  Status begin(const JobStep& step) override {
    SW_TRY(check_count(step));
    end_reading();
    const std::scoped_lock lock(mutex_);
    ++step_;
    name_ = step.name;
    summary_ = summary_of(step);
    bytes_.assign(step.bytes.begin(), step.bytes.end());
    results_.assign(bytes_.size(), {});
    is_done_.assign(bytes_.size(), false);
    unfinished_ = bytes_.size();
    last_ = std::numeric_limits<std::size_t>::max();
    ready_ = 0;
    done_by_others_ = 0;
    std::vector<std::uint32_t> todo(bytes_.size());
    for (std::uint32_t job = 0; job < todo.size(); ++job) todo[job] = job;
    shares_.emplace(std::move(todo), bytes_, session_.size());
    for (int rank = 1; rank < session_.size(); ++rank) {
      if (of(rank).step == step_) SW_TRY(admit(rank));
    }
    return {};
  }

  std::optional<std::size_t> take() override {
    std::unique_lock lock(mutex_);
    if (is_closed_) return std::nullopt;
    if (const auto job = next(0)) return job;
    // Whoever follows this sees it go on until the others are through too.
    [[maybe_unused]] const Status ended = wait(lock, [&] { return unfinished_ == 0; });
    return std::nullopt;
  }

  Status finish(std::size_t job, JobResult result) override {
    const std::scoped_lock lock(mutex_);
    note(job, std::move(result));
    return {};
  }

  Result<std::vector<std::string>> end() override {
    std::unique_lock lock(mutex_);
    SW_TRY(wait(lock, [&] { return unfinished_ == 0 && ready_ == session_.size() - 1; }));
    forget_behind(last_, results_);
    std::uint64_t count = 0;
    for (const std::string& result : results_) count += result.empty() ? 0U : 1U;
    MessageWriter message = job_message(JobMessage::kEnd, step_);
    message.number(count);
    for (std::size_t job = 0; job < results_.size(); ++job) {
      if (!results_[job].empty()) message.number(job).text(results_[job]);
    }
    const std::string all = message.take();
    for (int rank = 1; rank < session_.size(); ++rank) session_.send(rank, Channel::kJobs, all);
    shares_.reset();
    return std::move(results_);
  }

  [[nodiscard]] std::uint64_t bytes_done_by_others() const override { return done_by_others_; }

 private:
  struct OtherRank {
    std::uint64_t step = 0;  // that it has come to
    std::string summary;
    std::uint32_t threads = 1;
    std::uint32_t jobs = 0;  // that it has and has not told of
    std::uint64_t bytes = 0;
    bool has_all = false;  // it knows that no more will come
  };

  [[nodiscard]] OtherRank& of(int rank) { return ranks_[static_cast<std::size_t>(rank)]; }

  // All that follows REQUIRES: the lock.

  Status admit(int rank) {
    if (of(rank).summary != summary_) {
      return fail(
          Code::kRanksDiffer,
          "{}: {} sees other things than rank 0: its files have other sizes or can't all be "
          "read, or its program is another version; all ranks must see the same files",
          name_, session_.name_of(rank));
    }
    ++ready_;
    changed_.notify_all();
    top_up(rank);
    return {};
  }

  // What nobody wants any more counts as done.
  std::optional<std::uint32_t> next(int rank, bool of_its_own = false) {
    while (true) {
      const auto job = of_its_own ? shares_->take_own(rank) : shares_->take(rank);
      if (!job || *job <= last_) return job;
      note(*job, {});
    }
  }

  void top_up(int rank) {
    OtherRank& other = of(rank);
    std::vector<std::uint32_t> more;
    const std::uint32_t least = other.threads + kJobsAhead;
    while (!other.has_all && (other.jobs < least || other.bytes < kJobsAheadBytes)) {
      // Nothing is taken from another for later.
      const bool needs_one = other.jobs < least;
      const auto job = next(rank, !needs_one);
      other.has_all = needs_one && !job;
      if (!job) break;
      more.push_back(*job);
      ++other.jobs;
      other.bytes += bytes_[*job];
    }
    if (!more.empty()) send(rank, job_message(JobMessage::kJobs, step_).numbers(more));
    if (!other.has_all) return;
    MessageWriter message = job_message(JobMessage::kNoMore, step_);
    send(rank, message);
  }

  void note(std::size_t job, JobResult result) {
    results_[job] = std::move(result.bytes);
    is_done_[job] = true;
    if (result.is_last) last_ = std::min(last_, job);
    --unfinished_;
    if (unfinished_ == 0) changed_.notify_all();
  }

  Status take_in(int from, std::string_view bytes) {
    MessageReader reader(bytes);
    const auto kind = static_cast<JobMessage>(SW_TRY(reader.kind()));
    const std::uint64_t step = SW_TRY(reader.number());
    const std::scoped_lock lock(mutex_);
    switch (kind) {
      case JobMessage::kReady:
        of(from) = {};
        of(from).step = step;
        of(from).summary = SW_TRY(reader.text());
        of(from).threads = static_cast<std::uint32_t>(SW_TRY(reader.number()));
        return step == step_ ? admit(from) : Status();
      case JobMessage::kDone:
        return take_done(from, step, reader);
      default:
        return fail(Code::kInternal, "{}: a message of no known kind", session_.name_of(from));
    }
  }

  Status take_done(int from, std::uint64_t step, MessageReader& reader) {
    const std::uint64_t job = SW_TRY(reader.number());
    JobResult result;
    result.is_last = SW_TRY(reader.number()) != 0;
    result.bytes = SW_TRY(reader.text());
    if (step != step_ || job >= is_done_.size() || is_done_[job]) {
      return fail(Code::kInternal, "{}: job {} was not to be done", session_.name_of(from), job);
    }
    OtherRank& other = of(from);
    --other.jobs;
    other.bytes -= bytes_[job];
    done_by_others_ += bytes_[job];
    note(job, std::move(result));
    if (!other.has_all) top_up(from);
    return {};
  }

  std::string name_;
  std::string summary_;
  std::vector<std::uint64_t> bytes_;  // of each job
  std::vector<std::string> results_;
  std::vector<bool> is_done_;
  std::size_t unfinished_ = 0;
  std::size_t last_ = 0;  // job of which the result is wanted
  int ready_ = 0;         // ranks that have come to this step
  std::optional<PieceShares> shares_;
  std::vector<OtherRank> ranks_;
  std::atomic<std::uint64_t> done_by_others_{0};
};

class HelpedJobs final : public RankJobs {
 public:
  HelpedJobs(RankSession& session, SharedReading* reading) : RankJobs(session, reading) {
    session_.on_message(Channel::kJobs,
                        [this](int, std::string_view bytes) { return take_in(bytes); });
  }
  ~HelpedJobs() override { session_.on_message(Channel::kJobs, {}); }
  HelpedJobs(const HelpedJobs&) = delete;
  HelpedJobs& operator=(const HelpedJobs&) = delete;

  Status begin(const JobStep& step) override {
    SW_TRY(check_count(step));
    end_reading();
    const std::scoped_lock lock(mutex_);
    ++step_;
    count_ = step.bytes.size();
    jobs_.clear();
    has_all_ = false;
    results_.reset();
    send(0, job_message(JobMessage::kReady, step_)
                .text(summary_of(step))
                .number(static_cast<std::uint64_t>(step.threads)));
    return {};
  }

  std::optional<std::size_t> take() override {
    std::unique_lock lock(mutex_);
    if (!wait(lock, [&] { return !jobs_.empty() || has_all_; }) || jobs_.empty() || is_closed_) {
      return std::nullopt;
    }
    const std::uint32_t job = jobs_.front();
    jobs_.pop_front();
    return job;
  }

  Status finish(std::size_t job, JobResult result) override {
    send(0, job_message(JobMessage::kDone, step_)
                .number(job)
                .number(result.is_last ? 1 : 0)
                .text(result.bytes));
    return {};
  }

  Result<std::vector<std::string>> end() override {
    std::unique_lock lock(mutex_);
    SW_TRY(wait(lock, [&] { return results_.has_value(); }));
    return *std::move(results_);
  }

  [[nodiscard]] std::uint64_t bytes_done_by_others() const override { return 0; }

 private:
  Status take_in(std::string_view bytes) {
    MessageReader reader(bytes);
    const auto kind = static_cast<JobMessage>(SW_TRY(reader.kind()));
    const std::uint64_t step = SW_TRY(reader.number());
    const std::scoped_lock lock(mutex_);
    if (step != step_) return fail(Code::kInternal, "rank 0: a message about another step");
    switch (kind) {
      case JobMessage::kJobs:
        for (const std::uint32_t job : SW_TRY(reader.numbers())) jobs_.push_back(job);
        break;
      case JobMessage::kNoMore:
        has_all_ = true;
        break;
      case JobMessage::kEnd:
        SW_TRY(take_results(reader));
        break;
      default:
        return fail(Code::kInternal, "rank 0: a message of no known kind");
    }
    changed_.notify_all();
    return {};
  }

  Status take_results(MessageReader& reader) {
    std::vector<std::string> results(count_);
    for (std::uint64_t count = SW_TRY(reader.number()); count > 0; --count) {
      const std::uint64_t job = SW_TRY(reader.number());
      if (job >= count_) return fail(Code::kInternal, "rank 0: there is no job {}", job);
      results[job] = SW_TRY(reader.text());
    }
    results_ = std::move(results);
    return {};
  }

  std::size_t count_ = 0;
  std::deque<std::uint32_t> jobs_;
  bool has_all_ = false;
  std::optional<std::vector<std::string>> results_;
};

}  // namespace

std::unique_ptr<JobSharing> jobs_of_ranks(RankSession& session, SharedReading* reading) {
  if (session.is_first()) return std::make_unique<LedJobs>(session, reading);
  return std::make_unique<HelpedJobs>(session, reading);
}

Status wait_for_ranks(JobSharing* sharing, std::string_view seen) {
  if (sharing == nullptr) return {};
  Workers workers;
  workers.sharing = sharing;
  SW_TRY(run_jobs({"what was found", {}, 1, seen}, workers, {}));
  return {};
}

}  // namespace shardwright

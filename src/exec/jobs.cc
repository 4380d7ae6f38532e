// SPDX-License-Identifier: Apache-2.0
#include "exec/jobs.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/fail.h"
#include "base/message.h"
#include "exec/threads.h"

namespace shardwright {
namespace {

// All jobs are this process's.
class OwnJobs final : public JobSharing {
 public:
  Status begin(const JobStep& step) override {
    results_.resize(step.bytes.size());
    return {};
  }
  std::optional<std::size_t> take() override {
    const std::size_t job = next_++;
    if (job >= results_.size() || job > last_) return std::nullopt;
    return job;
  }
  // Each thread touches another result.
  Status finish(std::size_t job, JobResult result) override {
    results_[job] = std::move(result.bytes);
    std::size_t last = last_;
    while (result.is_last && job < last && !last_.compare_exchange_weak(last, job)) {
    }
    return {};
  }
  void close() override { last_ = 0; }
  Result<std::vector<std::string>> end() override {
    forget_behind(last_, results_);
    return std::move(results_);
  }
  [[nodiscard]] std::uint64_t bytes_done_by_others() const override { return 0; }

 private:
  std::vector<std::string> results_;
  std::atomic<std::size_t> next_{0};
  std::atomic<std::size_t> last_{std::numeric_limits<std::size_t>::max()};
};

}  // namespace

Result<std::vector<std::string>> run_jobs(const JobStep& step, const Workers& workers,
                                          const std::function<JobWorker()>& make_worker) {
  OwnJobs own;
  JobSharing& jobs = workers.sharing == nullptr ? own : *workers.sharing;
  JobStep begun = step;
  begun.threads = std::max(workers.threads, 1);
  SW_TRY(jobs.begin(begun));
  std::atomic<bool> stop{false};
  std::atomic<std::uint64_t> bytes{0};
  const auto stopped = [&](Status status) {
    stop = true;
    jobs.close();
    return status;
  };
  const auto work = [&]() -> Status {
    const JobWorker worker = make_worker();
    while (!stop) {
      if (workers.cancelled != nullptr && *workers.cancelled) {
        return stopped(fail(Code::kCancelled, "stopped before everything was read"));
      }
      const std::optional<std::size_t> job = jobs.take();
      if (!job) return {};
      Result<JobResult> result = worker(*job);
      Status status = result ? jobs.finish(*job, *std::move(result))
                             : Status(std::unexpected(std::move(result).error()));
      if (!status) return stopped(std::move(status));
      bytes += step.bytes[*job];
    }
    return {};
  };
  const auto tell = [&] {
    if (workers.on_progress) workers.on_progress(bytes + jobs.bytes_done_by_others());
  };
  const auto most = static_cast<int>(std::min<std::size_t>(step.bytes.size(), 1U << 20));
  if (most > 0) SW_TRY(run_on_threads(std::min(begun.threads, most), tell, work));
  std::vector<std::string> results = SW_TRY(jobs.end());
  tell();
  return results;
}

void forget_behind(std::size_t last, std::vector<std::string>& results) {
  if (last >= results.size()) return;
  for (std::size_t job = last + 1; job < results.size(); ++job) results[job].clear();
}

Result<JobResult> result_of(const Status& status, const Defects& defects) {
  if (status) return JobResult{};
  if (!Defects::is_one(status.error())) return std::unexpected(status.error());
  return JobResult{MessageWriter().error(status.error()).take(), !defects.collects()};
}

Result<Status> status_in(const std::string& result) {
  if (result.empty()) return Status();
  MessageReader reader(result);
  return Status(std::unexpected(SW_TRY(reader.error())));
}

}  // namespace shardwright

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "shardwright/checkpoint.h"
#include "shardwright/error.h"

namespace shardwright {

/// What a job found, in bytes that mean the same in every process.
struct JobResult {
  std::string bytes;
  /// What jobs behind this one would find is not wanted any more.
  bool is_last = false;
};

/// Jobs that can be done in any order, by any process.
struct JobStep {
  std::string_view name;                 ///< what is done, in messages: `reading the tensors`
  std::span<const std::uint64_t> bytes;  ///< that each job reads
  int threads = 1;                       ///< of this process
  std::string_view seen = {};            ///< what every process must have seen alike until now
};

/// Who hands out jobs: to this process's threads, and to others where several come to the same
/// steps in the same order. begin() and end() are called by one thread, the rest by those that
/// work.
class JobSharing {
 public:
  virtual ~JobSharing() = default;
  /// Errors: kRanksDiffer where another process has other jobs.
  [[nodiscard]] virtual Status begin(const JobStep& step) = 0;
  /// The next job of this process, by its number; nothing when there will be none. May wait.
  [[nodiscard]] virtual std::optional<std::size_t> take() = 0;
  [[nodiscard]] virtual Status finish(std::size_t job, JobResult result) = 0;
  /// A job has failed: who waits in take() gets nothing.
  virtual void close() = 0;
  /// Waits until every process has come so far and no job is left. Gives what each job found,
  /// whoever did it: the same in all processes.
  [[nodiscard]] virtual Result<std::vector<std::string>> end() = 0;
  /// What the jobs of this step that others did have read.
  [[nodiscard]] virtual std::uint64_t bytes_done_by_others() const = 0;
};

/// Who does jobs, and who follows that.
struct Workers {
  int threads = 1;
  JobSharing* sharing = nullptr;  ///< null: nobody else
  const std::atomic<bool>* cancelled = nullptr;
  /// Told what the jobs that are done have read, a few times a second from the calling thread; may
  /// be empty.
  std::function<void(std::uint64_t bytes)> on_progress = {};
};

/// Does one job. Each thread has its own, with its own buffers.
using JobWorker = std::function<Result<JobResult>(std::size_t job)>;

/// Does as many jobs as `step` has, in this order, several at a time, and gives what each found:
/// the same with any number of threads and processes. Nothing is found behind a result that is the
/// last. `step.threads` follows from `workers`. Errors: the first that a job gives; kCancelled.
[[nodiscard]] Result<std::vector<std::string>> run_jobs(
    const JobStep& step, const Workers& workers, const std::function<JobWorker()>& make_worker);

/// Which of `results` are wanted where job `last` was the last.
void forget_behind(std::size_t last, std::vector<std::string>& results);

/// A job's status as its result, for `defects` to be told of it later: nothing for success. What
/// no Defects would record fails the job.
[[nodiscard]] Result<JobResult> result_of(const Status& status, const Defects& defects);
/// The status that it was. Error: kInternal for what is none.
[[nodiscard]] Result<Status> status_in(const std::string& result);

}  // namespace shardwright

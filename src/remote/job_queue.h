// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "shardwright/error.h"

namespace shardwright {

/// Does jobs on threads of its own, which are started with the first one. After one that fails
/// nothing more is done. Thread-safe.
class JobQueue {
 public:
  using Job = std::function<Status()>;

  explicit JobQueue(int threads) : most_threads_(threads) {}
  ~JobQueue() { stop(); }
  JobQueue(const JobQueue&) = delete;
  JobQueue& operator=(const JobQueue&) = delete;

  /// Waits while twice as many wait as there are threads. Errors: what a job failed with;
  /// kOutOfMemory where there is no thread; kCancelled behind stop().
  [[nodiscard]] Status add(Job job);
  /// Waits until all that was added is done. Error: what a job failed with.
  [[nodiscard]] Status wait();
  /// Ends the threads; what they have not begun is not done.
  void stop() noexcept;

 private:
  [[nodiscard]] Status start_thread();
  void work();

  int most_threads_;
  std::mutex mutex_;  // of what follows
  std::condition_variable changed_;
  std::deque<Job> jobs_;
  std::vector<std::thread> threads_;
  std::size_t busy_ = 0;
  std::optional<Error> failure_;
  bool is_stopped_ = false;
};

}  // namespace shardwright

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>

#include "shardwright/verify.h"

namespace shardwright {

/// Jobs that threads share out, with progress and a way to stop.
class Workload {
 public:
  /// Does one job, by its number. Each thread has its own, with its own buffers.
  using Worker = std::function<Status(std::size_t)>;

  /// Borrows `options`. `total`: bytes to be read, for the progress.
  Workload(const ProofOptions& options, std::uint64_t total);

  /// Does the jobs [0, count) in this order, several at a time. Error: the first that a job gives;
  /// kCancelled.
  [[nodiscard]] Status run(std::size_t count, const std::function<Worker()>& make_worker);

  /// Told by workers. Safe for concurrent use.
  void add_bytes(std::uint64_t bytes) { done_ += bytes; }
  [[nodiscard]] std::uint64_t bytes_done() const { return done_; }
  [[nodiscard]] int threads() const { return threads_; }
  /// For each of `parts` equal buffers of a thread: all threads together stay within 64 MiB.
  [[nodiscard]] std::size_t buffer_bytes(int parts) const;

 private:
  [[nodiscard]] Status work(std::size_t count, const Worker& worker);

  const RunOptions& options_;
  std::uint64_t total_;
  int threads_;
  std::atomic<std::uint64_t> done_{0};
  std::atomic<std::size_t> next_{0};
  std::atomic<bool> stop_{false};
};

}  // namespace shardwright

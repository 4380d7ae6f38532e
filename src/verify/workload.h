// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "exec/jobs.h"
#include "shardwright/verify.h"

namespace shardwright {

/// The threads that `options` ask for, and the processes that share what they do.
[[nodiscard]] Workers workers_of(const ProofOptions& options);

/// How much of `total` bytes one job of several processes should read: some hundred jobs, none of
/// more than 16 MiB and none smaller than a tile.
[[nodiscard]] std::uint64_t shared_job_bytes(std::uint64_t total);

/// Jobs that threads share out, with progress and a way to stop.
class Workload {
 public:
  /// Does one job, by its number. Each thread has its own, with its own buffers.
  using Worker = std::function<Status(std::size_t)>;

  /// Borrows `options`. `total`: bytes to be read, for the progress. `asks_servers`: each read is a
  /// request, so buffers are larger.
  Workload(const ProofOptions& options, std::uint64_t total, bool asks_servers);

  /// Does the jobs [0, count) in this order, several at a time. Error: the first that a job gives;
  /// kCancelled.
  [[nodiscard]] Status run(std::size_t count, const std::function<Worker()>& make_worker);
  /// The same with the processes of RunOptions::sharing. `bytes`: what each job reads. Gives what
  /// each found, whoever did it.
  [[nodiscard]] Result<std::vector<std::string>> share(
      std::string_view name, std::span<const std::uint64_t> bytes,
      const std::function<JobWorker()>& make_worker);

  /// Told by workers. Safe for concurrent use.
  void add_bytes(std::uint64_t bytes) { done_ += bytes; }
  [[nodiscard]] std::uint64_t bytes_done() const { return done_; }
  [[nodiscard]] int threads() const { return workers_.threads; }
  /// For each of `parts` equal buffers of a thread: all threads together stay within 64 MiB.
  [[nodiscard]] std::size_t buffer_bytes(int parts) const;

 private:
  const RunOptions& options_;
  std::uint64_t total_;
  bool asks_servers_;
  Workers workers_;
  std::atomic<std::uint64_t> done_{0};
};

}  // namespace shardwright

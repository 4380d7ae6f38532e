// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>

#include "io/source_files.h"
#include "shardwright/plan.h"
#include "shardwright/storage.h"

namespace shardwright {

struct ExecuteProgress {
  std::uint64_t payload_bytes_done = 0;
  std::uint64_t payload_bytes_total = 0;
};

struct ExecuteOptions {
  int threads = 1;
  /// Shared by the threads: each gets a tile and a scratch buffer out of it.
  std::uint64_t buffer_bytes = std::uint64_t{64} << 20;
  /// Called a few times a second from the calling thread; may be empty.
  std::function<void(const ExecuteProgress&)> on_progress;
  /// Set from outside (a signal handler) to stop: kCancelled. May be null.
  const std::atomic<bool>* cancelled = nullptr;
};

struct ExecuteReport {
  std::uint64_t payload_bytes_written = 0;
};

/// Carries out a plan: creates the target's files, fills them through the threads' fixed buffers,
/// and makes their contents durable. The only code that moves tensor bytes. The bytes written do
/// not depend on the number of threads. REQUIRES: check_plan(plan) succeeded. On an error the
/// target holds unfinished files; the owner of the directory removes them.
[[nodiscard]] Result<ExecuteReport> execute(const Plan& plan, SourceFiles& files, Directory& target,
                                            const ExecuteOptions& options);

}  // namespace shardwright

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <signal.h>

#include <atomic>

namespace shardwright::cli {

/// While it lives, the first SIGINT or SIGTERM sets flag() instead of ending the process, so that
/// an unfinished output can be removed. A second one ends the process at once. Signals that were
/// ignored before (a background job's) stay ignored. One at a time.
class StopSignal {
 public:
  StopSignal();
  ~StopSignal();
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;

  [[nodiscard]] const std::atomic<bool>& flag() const;

 private:
  struct sigaction old_interrupt_{};
  struct sigaction old_terminate_{};
};

}  // namespace shardwright::cli

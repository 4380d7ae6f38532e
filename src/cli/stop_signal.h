// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <signal.h>

#include <array>
#include <atomic>

namespace shardwright::cli {

/// While it lives, the first SIGINT, SIGTERM or SIGHUP sets flag() instead of ending the process,
/// so that an unfinished output can be removed. A second one of the same kind ends the process at
/// once. Signals that were ignored before (a background job's, nohup's) stay ignored. One at a
/// time.
class StopSignal {
 public:
  StopSignal();
  ~StopSignal();
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;

  [[nodiscard]] const std::atomic<bool>& flag() const;
  /// Which signal came first; 0 where none did.
  [[nodiscard]] int signal() const;

 private:
  static constexpr std::array kSignals = {SIGINT, SIGTERM, SIGHUP};

  std::array<struct sigaction, kSignals.size()> old_{};
};

}  // namespace shardwright::cli

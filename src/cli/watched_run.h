// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "cli/progress_line.h"
#include "cli/stop_signal.h"

namespace shardwright::cli {

/// While one lives, work that reads a whole checkpoint shows its progress and can be stopped: by
/// the console's follower, else on the terminal and by signals.
class WatchedRun {
 public:
  explicit WatchedRun(Console& console)
      : console_(console), follower_(console.follower()), line_(console) {
    if (follower_ == nullptr) stop_.emplace();
  }
  ~WatchedRun() {
    if (stop_ && stop_->flag()) console_.stopped_by(stop_->signal());
  }
  WatchedRun(const WatchedRun&) = delete;
  WatchedRun& operator=(const WatchedRun&) = delete;

  /// Valid as long as this object.
  [[nodiscard]] RunOptions options() {
    if (follower_ != nullptr) return *follower_;
    RunOptions options;
    options.on_progress = [this](const ConvertProgress& progress) { line_.update(progress); };
    options.on_phase = [this](RunPhase phase, std::uint64_t bytes) { line_.begin(phase, bytes); };
    options.cancelled = &stop_->flag();
    return options;
  }

  [[nodiscard]] double seconds() const { return line_.seconds(); }

 private:
  Console& console_;
  const RunOptions* follower_;
  std::optional<StopSignal> stop_;
  ProgressLine line_;
};

}  // namespace shardwright::cli

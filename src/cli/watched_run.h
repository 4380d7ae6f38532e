// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "cli/progress_line.h"
#include "cli/stop_signal.h"

namespace shardwright::cli {

/// While one lives, work that reads a whole checkpoint shows its progress and can be stopped: by
/// the console's follower, else on the terminal and by signals.
class WatchedRun {
 public:
  explicit WatchedRun(Console& console) : follower_(console.follower()), line_(console) {
    if (follower_ == nullptr) stop_.emplace();
  }

  /// Valid as long as this object.
  [[nodiscard]] RunOptions options() {
    if (follower_ != nullptr) return *follower_;
    RunOptions options;
    options.on_progress = [this](const ConvertProgress& progress) { line_.update(progress); };
    options.cancelled = &stop_->flag();
    return options;
  }

  [[nodiscard]] double seconds() const { return line_.seconds(); }

 private:
  const RunOptions* follower_;
  std::optional<StopSignal> stop_;
  ProgressLine line_;
};

}  // namespace shardwright::cli

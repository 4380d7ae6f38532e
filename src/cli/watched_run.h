// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cli/progress_line.h"
#include "cli/stop_signal.h"

namespace shardwright::cli {

/// While one lives, work that reads a whole checkpoint shows its progress and can be stopped.
class WatchedRun {
 public:
  explicit WatchedRun(Console& console) : line_(console) {}

  /// Valid as long as this object.
  [[nodiscard]] RunOptions options() {
    RunOptions options;
    options.on_progress = [this](const ConvertProgress& progress) { line_.update(progress); };
    options.cancelled = &stop_.flag();
    return options;
  }

 private:
  StopSignal stop_;
  ProgressLine line_;
};

}  // namespace shardwright::cli

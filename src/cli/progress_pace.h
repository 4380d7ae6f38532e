// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace shardwright::cli {

/// When progress is worth another line in a log: ten seconds after the last one or at the next
/// twentieth, and never twice within two seconds. The first line waits as well, so that short work
/// has none.
class ProgressPace {
 public:
  /// `seconds` since the work began, `share` of it that is done. Remembers what it agreed to.
  [[nodiscard]] bool is_due(double seconds, double share);

 private:
  double last_seconds_ = 0.0;
  int last_twentieth_ = 0;
};

}  // namespace shardwright::cli

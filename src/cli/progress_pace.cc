// SPDX-License-Identifier: Apache-2.0
#include "cli/progress_pace.h"

namespace shardwright::cli {

bool ProgressPace::is_due(double seconds, double share) {
  constexpr double kEverySeconds = 10.0;
  constexpr double kLeastSeconds = 2.0;
  const double waited = seconds - last_seconds_;
  if (waited < kLeastSeconds) return false;
  constexpr double kTwentieths = 20.0;
  constexpr double kRounding = 1e-9;
  const int twentieth = static_cast<int>(share * kTwentieths + kRounding);
  if (waited < kEverySeconds && twentieth <= last_twentieth_) return false;
  last_seconds_ = seconds;
  last_twentieth_ = twentieth;
  return true;
}

}  // namespace shardwright::cli

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>

#include "cli/console.h"
#include "cli/progress_pace.h"
#include "shardwright/convert.h"

namespace shardwright::cli {

/// A moment of a run.
struct ProgressSample {
  ConvertProgress progress;
  double seconds = 0.0;              ///< since the phase began
  std::uint64_t resident_bytes = 0;  ///< of the process; 0 where that is not known
  RunPhase phase = RunPhase::kCopy;
};

/// `copy`, as progress in JSON has it.
[[nodiscard]] std::string_view phase_name(RunPhase phase);

/// `copying  42 %  1.20 GB of 2.86 GB  1.10 GB/s  ETA 2 s  RSS 118 MiB`, cut to `columns`.
[[nodiscard]] std::string progress_text(const ProgressSample& sample, int columns);
/// The same as a JSON object on one line; what is not known yet is null.
[[nodiscard]] std::string progress_json(const ProgressSample& sample);

/// Memory of this process that is in RAM now; 0 where that is not known.
[[nodiscard]] std::uint64_t resident_bytes();

/// Tells how far a run is, as the console shows progress: a terminal's line ten times a second,
/// lines and the log at their ProgressPace, JSON once a second. May be called from any thread.
class ProgressLine {
 public:
  /// Seconds since some moment.
  using Clock = std::function<double()>;

  explicit ProgressLine(Console& console, Clock clock = steady_clock);
  ~ProgressLine() { console_->status_line(""); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  /// A part of the work begins, which will read `bytes`; 0 where that is not known.
  void begin(RunPhase phase, std::uint64_t bytes);
  void update(const ConvertProgress& progress);
  /// Since this object was made.
  [[nodiscard]] double seconds() const { return clock_() - start_; }

 private:
  [[nodiscard]] static double steady_clock();
  void tell(const ProgressSample& sample);

  Console* console_;
  Clock clock_;
  double start_;
  double phase_start_;
  double shown_;
  RunPhase phase_ = RunPhase::kRead;
  ProgressPace pace_;
  std::mutex mutex_;
};

}  // namespace shardwright::cli

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>

#include "cli/console.h"
#include "shardwright/convert.h"

namespace shardwright::cli {

/// A moment of a running conversion.
struct ProgressSample {
  ConvertProgress progress;
  double seconds = 0.0;              ///< since it began
  std::uint64_t resident_bytes = 0;  ///< of the process; 0 where that is not known
};

/// ` 42 %  1.20 GB of 2.86 GB  1.10 GB/s  ETA 2 s  RSS 118 MiB`, cut to `columns`.
[[nodiscard]] std::string progress_text(const ProgressSample& sample, int columns);

/// Memory of this process that is in RAM now; 0 where that is not known.
[[nodiscard]] std::uint64_t resident_bytes();

/// One line that rewrites itself on a terminal, at most ten times a second; silent elsewhere.
/// update() may be called from any thread.
class ProgressLine {
 public:
  explicit ProgressLine(Console& console) : console_(&console) {}
  ~ProgressLine() { console_->status_line(""); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  void update(const ConvertProgress& progress);
  [[nodiscard]] double seconds() const;

 private:
  using Clock = std::chrono::steady_clock;

  Console* console_;
  Clock::time_point start_ = Clock::now();
  std::mutex mutex_;
  Clock::time_point shown_;
};

}  // namespace shardwright::cli

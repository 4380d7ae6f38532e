// SPDX-License-Identifier: Apache-2.0
#include "cli/progress_line.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <memory>

#include "base/text.h"
#include "cli/quantity.h"

namespace shardwright::cli {

std::string progress_text(const ProgressSample& sample, int columns) {
  const std::uint64_t done = std::min(sample.progress.bytes_done, sample.progress.bytes_total);
  const std::uint64_t total = sample.progress.bytes_total;
  const double share = total == 0 ? 1.0 : static_cast<double>(done) / static_cast<double>(total);
  // 100 % is for what is complete.
  std::string text = fmt::format("{:3} %  {} of {}", static_cast<int>(share * 100.0),
                                 format_bytes(done), format_bytes(total));
  constexpr double kTooEarlyToTell = 0.2;
  if (sample.seconds > kTooEarlyToTell && done > 0) {
    const double rate = static_cast<double>(done) / sample.seconds;
    text += fmt::format("  {:.2f} GB/s  ETA {}", rate / 1e9,
                        format_seconds(static_cast<double>(total - done) / rate));
  }
  if (sample.resident_bytes > 0) {
    text += fmt::format("  RSS {}", format_memory(sample.resident_bytes));
  }
  return fit_width(text, columns);
}

std::uint64_t resident_bytes() {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen("/proc/self/statm", "r"),
                                                             &std::fclose);
  unsigned long long all_pages = 0;
  unsigned long long pages = 0;
  if (!file || std::fscanf(file.get(), "%llu %llu", &all_pages, &pages) != 2) return 0;
  return pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

void ProgressLine::update(const ConvertProgress& progress) {
  if (!console_->shows_progress()) return;
  constexpr auto kInterval = std::chrono::milliseconds(100);
  const std::lock_guard lock(mutex_);
  const Clock::time_point now = Clock::now();
  if (now - shown_ < kInterval) return;
  shown_ = now;
  // The last column stays free: a terminal would go to the next line.
  console_->status_line(
      progress_text({progress, seconds(), resident_bytes()}, console_->columns() - 1));
}

double ProgressLine::seconds() const {
  return std::chrono::duration<double>(Clock::now() - start_).count();
}

}  // namespace shardwright::cli

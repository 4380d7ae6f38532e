// SPDX-License-Identifier: Apache-2.0
#include "cli/progress_line.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <limits>
#include <memory>
#include <optional>

#include "base/text.h"
#include "cli/json_writer.h"
#include "cli/quantity.h"

namespace shardwright::cli {

namespace {

std::string_view phase_verb(RunPhase phase) {
  switch (phase) {
    case RunPhase::kPlan:
      return "planning";
    case RunPhase::kCompare:
      return "comparing what is stored twice";
    case RunPhase::kRead:
      return "reading";
    case RunPhase::kCopy:
      return "copying";
    case RunPhase::kPublish:
      return "publishing";
  }
  return "";
}

double share_of(const ConvertProgress& progress) {
  if (progress.bytes_total == 0) return 1.0;
  const std::uint64_t done = std::min(progress.bytes_done, progress.bytes_total);
  return static_cast<double>(done) / static_cast<double>(progress.bytes_total);
}

// Bytes a second; nothing where it is too early to tell.
std::optional<double> rate_of(const ProgressSample& sample) {
  constexpr double kTooEarlyToTell = 0.2;
  const std::uint64_t done = std::min(sample.progress.bytes_done, sample.progress.bytes_total);
  if (sample.seconds <= kTooEarlyToTell || done == 0) return std::nullopt;
  return static_cast<double>(done) / sample.seconds;
}

double seconds_left(const ProgressSample& sample, double rate) {
  const ConvertProgress& progress = sample.progress;
  const std::uint64_t done = std::min(progress.bytes_done, progress.bytes_total);
  return static_cast<double>(progress.bytes_total - done) / rate;
}

}  // namespace

std::string_view phase_name(RunPhase phase) {
  switch (phase) {
    case RunPhase::kPlan:
      return "plan";
    case RunPhase::kCompare:
      return "compare";
    case RunPhase::kRead:
      return "read";
    case RunPhase::kCopy:
      return "copy";
    case RunPhase::kPublish:
      return "publish";
  }
  return "";
}

std::string progress_text(const ProgressSample& sample, int columns) {
  const std::uint64_t total = sample.progress.bytes_total;
  // 100 % is for what is complete.
  std::string text =
      fmt::format("{} {:3} %  {} of {}", phase_verb(sample.phase),
                  static_cast<int>(share_of(sample.progress) * 100.0),
                  format_bytes(std::min(sample.progress.bytes_done, total)), format_bytes(total));
  if (const auto rate = rate_of(sample)) {
    text += fmt::format("  {:.2f} GB/s  ETA {}", *rate / 1e9,
                        format_seconds(seconds_left(sample, *rate)));
  }
  if (sample.resident_bytes > 0) {
    text += fmt::format("  RSS {}", format_memory(sample.resident_bytes));
  }
  return fit_width(text, columns);
}

std::string progress_json(const ProgressSample& sample) {
  JsonWriter json;
  json.open_line().text("event", "progress").text("phase", phase_name(sample.phase));
  json.number("bytes_done", std::min(sample.progress.bytes_done, sample.progress.bytes_total));
  json.number("bytes_total", sample.progress.bytes_total).real("seconds", sample.seconds);
  const auto rate = rate_of(sample);
  json.key("bytes_per_second");
  rate ? json.real(*rate) : json.null();
  json.key("eta_seconds");
  rate ? json.real(seconds_left(sample, *rate)) : json.null();
  json.number("resident_bytes", sample.resident_bytes).close();
  return json.take();
}

std::uint64_t resident_bytes() {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen("/proc/self/statm", "r"),
                                                             &std::fclose);
  unsigned long long all_pages = 0;
  unsigned long long pages = 0;
  if (!file || std::fscanf(file.get(), "%llu %llu", &all_pages, &pages) != 2) return 0;
  return pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

double ProgressLine::steady_clock() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

ProgressLine::ProgressLine(Console& console, Clock clock)
    : console_(&console),
      clock_(std::move(clock)),
      start_(clock_()),
      phase_start_(start_),
      shown_(-std::numeric_limits<double>::infinity()) {}

void ProgressLine::begin(RunPhase phase, std::uint64_t bytes) {
  // What takes less than seconds is not worth a line in a log.
  constexpr std::uint64_t kWorthALine = 1'000'000'000;
  const std::lock_guard lock(mutex_);
  phase_ = phase;
  phase_start_ = clock_();
  pace_ = {};
  shown_ = -std::numeric_limits<double>::infinity();
  std::string text(phase_verb(phase));
  if (bytes > 0) text += ": " + format_bytes(bytes);
  switch (console_->progress_form()) {
    case ProgressForm::kJson: {
      JsonWriter json;
      json.open_line().text("event", "phase").text("phase", phase_name(phase));
      json.key("bytes_total");
      bytes > 0 ? json.number(bytes) : json.null();
      json.close();
      console_->progress_event(json.take());
      break;
    }
    case ProgressForm::kLine:
      console_->status_line(fit_width(text, console_->columns() - 1));
      break;
    case ProgressForm::kPlain:
    case ProgressForm::kNone:
      break;
  }
  if (bytes >= kWorthALine) console_->progress(text);
}

void ProgressLine::update(const ConvertProgress& progress) {
  const ProgressForm form = console_->progress_form();
  if (form == ProgressForm::kNone && !console_->has_log()) return;
  const std::lock_guard lock(mutex_);
  tell({progress, clock_() - phase_start_, resident_bytes(), phase_});
}

void ProgressLine::tell(const ProgressSample& sample) {
  constexpr double kLineSeconds = 0.1;
  constexpr double kEventSeconds = 1.0;
  const ProgressForm form = console_->progress_form();
  const double waited = sample.seconds - shown_;
  if (form == ProgressForm::kLine && waited >= kLineSeconds) {
    shown_ = sample.seconds;
    // The last column stays free: a terminal would go to the next line.
    console_->status_line(progress_text(sample, console_->columns() - 1));
  }
  if (form == ProgressForm::kJson && waited >= kEventSeconds) {
    shown_ = sample.seconds;
    console_->progress_event(progress_json(sample));
  }
  if (form != ProgressForm::kPlain && !console_->has_log()) return;
  if (pace_.is_due(sample.seconds, share_of(sample.progress))) {
    console_->progress(progress_text(sample, std::numeric_limits<int>::max()));
  }
}

}  // namespace shardwright::cli

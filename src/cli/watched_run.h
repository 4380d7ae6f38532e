// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "cli/progress_line.h"
#include "cli/stop_signal.h"
#include "cli/watched_requests.h"
#include "comm/rank_session.h"
#include "convert/rank_jobs.h"

namespace shardwright::cli {

/// While one lives, work that reads a whole checkpoint shows its progress and can be stopped: by
/// the console's follower, else on the terminal and by signals.
class WatchedRun {
 public:
  explicit WatchedRun(Console& console)
      : console_(console), follower_(console.follower()), line_(console) {
    if (follower_ != nullptr) return;
    requests_.emplace(console);
    if (console.watched_signals() == nullptr) own_stop_.emplace();
    stop_ = own_stop_ ? &*own_stop_ : console.watched_signals();
  }
  ~WatchedRun() {
    if (leads()) console_.ranks()->obey(nullptr);
    if (stop_ != nullptr && stop_->flag()) console_.stopped_by(stop_->signal());
  }
  WatchedRun(const WatchedRun&) = delete;
  WatchedRun& operator=(const WatchedRun&) = delete;

  /// Valid as long as this object.
  [[nodiscard]] RunOptions options() {
    RunOptions options;
    if (follower_ != nullptr) {
      options = *follower_;
      options.sharing = console_.sharing();
      return options;
    }
    options.on_progress = [this](const ConvertProgress& progress) { line_.update(progress); };
    options.on_phase = [this](RunPhase phase, std::uint64_t bytes) { line_.begin(phase, bytes); };
    options.cancelled = &stop_->flag();
    options.sharing = console_.sharing();
    if (leads()) {
      // A signal stops all ranks, and what stops any of them this one.
      console_.ranks()->obey(&stop_->flag());
      options.cancelled = &console_.ranks()->stopped();
    }
    return options;
  }

  /// Before anything is said of what was found: others who read a part of it are through too, and
  /// have all of it as this process has (`report` gives it as text). Gives whether this process is
  /// the one that says it.
  [[nodiscard]] Result<bool> may_tell(const std::function<std::string()>& report) {
    if (console_.sharing() != nullptr) SW_TRY(wait_for_ranks(console_.sharing(), report()));
    return console_.ranks() == nullptr || console_.ranks()->is_first();
  }

  [[nodiscard]] double seconds() const { return line_.seconds(); }

 private:
  // What is shared out to other ranks.
  [[nodiscard]] bool leads() const { return console_.sharing() != nullptr && stop_ != nullptr; }

  Console& console_;
  const RunOptions* follower_;
  std::optional<WatchedRequests> requests_;
  std::optional<StopSignal> own_stop_;  // of ranks, whose requests end with their session
  const StopSignal* stop_ = nullptr;
  ProgressLine line_;
};

}  // namespace shardwright::cli

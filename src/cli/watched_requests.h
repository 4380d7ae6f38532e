// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/console.h"
#include "cli/stop_signal.h"
#include "remote/open_path.h"

namespace shardwright::cli {

/// While one lives, a signal gives up requests to servers: what waits for one ends as work does
/// that reads a whole checkpoint. Nothing where somebody else watches for signals: a follower,
/// ranks, or one of these further out.
class WatchedRequests {
 public:
  explicit WatchedRequests(Console& console) : console_(console) {
    if (console.follower() != nullptr || console.ranks() != nullptr) return;
    if (console.watched_signals() != nullptr) return;
    stop_.emplace();
    requests_.emplace(stop_->flag());
    console.watch(&*stop_);
  }
  ~WatchedRequests() {
    if (!stop_) return;
    console_.watch(nullptr);
    if (stop_->flag()) console_.stopped_by(stop_->signal());
  }
  WatchedRequests(const WatchedRequests&) = delete;
  WatchedRequests& operator=(const WatchedRequests&) = delete;

 private:
  Console& console_;
  std::optional<StopSignal> stop_;
  std::optional<StoppableRequests> requests_;
};

/// Whether a word of a command line is, or gives a flag, a path on a server.
[[nodiscard]] bool names_a_server(const std::vector<std::string>& words);

}  // namespace shardwright::cli

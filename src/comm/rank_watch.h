// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace shardwright {

/// Who of the other ranks was last heard of when. Pure: the caller tells the time.
class RankWatch {
 public:
  using Time = std::chrono::steady_clock::time_point;

  /// `watched`: the ranks that must give signs of life from `now` on.
  RankWatch(int size, const std::vector<int>& watched, Time now);

  /// A rank gave a sign.
  void hear(int rank, Time now);
  /// All that are watched get their whole time again: nobody could hear them meanwhile.
  void restart(Time now);
  /// A rank has ended as it should: its silence means nothing.
  void leave(int rank);
  /// Whether all that are watched have ended.
  [[nodiscard]] bool all_left() const;
  /// The first rank that was silent for longer than `timeout`.
  [[nodiscard]] std::optional<int> silent(std::chrono::milliseconds timeout, Time now) const;

 private:
  std::vector<std::optional<Time>> heard_;  // nothing: not watched
};

}  // namespace shardwright

// SPDX-License-Identifier: Apache-2.0
#include "comm/rank_watch.h"

#include <algorithm>

namespace shardwright {

RankWatch::RankWatch(int size, const std::vector<int>& watched, Time now)
    : heard_(static_cast<std::size_t>(size)) {
  for (const int rank : watched) heard_[static_cast<std::size_t>(rank)] = now;
}

void RankWatch::hear(int rank, Time now) {
  std::optional<Time>& heard = heard_[static_cast<std::size_t>(rank)];
  if (heard) heard = now;
}

void RankWatch::restart(Time now) {
  for (std::optional<Time>& heard : heard_) {
    if (heard) heard = now;
  }
}

void RankWatch::leave(int rank) { heard_[static_cast<std::size_t>(rank)].reset(); }

bool RankWatch::all_left() const {
  return std::ranges::none_of(heard_, [](const auto& heard) { return heard.has_value(); });
}

std::optional<int> RankWatch::silent(std::chrono::milliseconds timeout, Time now) const {
  for (std::size_t rank = 0; rank < heard_.size(); ++rank) {
    if (heard_[rank] && now - *heard_[rank] > timeout) return static_cast<int>(rank);
  }
  return std::nullopt;
}

}  // namespace shardwright

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "comm/communicator.h"

namespace shardwright {

/// Ranks that are threads of one process: for tests of what ranks tell each other. It outlives the
/// communicators that it makes.
class ThreadRanks {
 public:
  explicit ThreadRanks(int size) : boxes_(static_cast<std::size_t>(size)) {}

  /// That of one rank. To be used by one thread.
  [[nodiscard]] std::unique_ptr<Communicator> communicator(int rank);
  /// What abort() was called with first; -1 where nobody did.
  [[nodiscard]] int abort_status() const { return abort_status_; }

 private:
  class OfOneRank;

  std::mutex mutex_;
  std::vector<std::deque<ReceivedMessage>> boxes_;
  std::atomic<int> abort_status_{-1};
};

}  // namespace shardwright

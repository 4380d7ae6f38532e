// SPDX-License-Identifier: Apache-2.0
#include "comm/thread_ranks.h"

#include <utility>

namespace shardwright {

class ThreadRanks::OfOneRank final : public Communicator {
 public:
  OfOneRank(ThreadRanks& ranks, int rank) : ranks_(ranks), rank_(rank) {}

  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(ranks_.boxes_.size()); }
  Status send(int to, std::string bytes) override {
    const std::scoped_lock lock(ranks_.mutex_);
    ranks_.boxes_[static_cast<std::size_t>(to)].push_back({rank_, std::move(bytes)});
    return {};
  }
  Result<std::optional<ReceivedMessage>> receive() override {
    const std::scoped_lock lock(ranks_.mutex_);
    auto& box = ranks_.boxes_[static_cast<std::size_t>(rank_)];
    if (box.empty()) return std::nullopt;
    ReceivedMessage message = std::move(box.front());
    box.pop_front();
    return message;
  }
  Result<bool> has_sent_all() override { return true; }
  void abort(int exit_status) override {
    int nobody = -1;
    ranks_.abort_status_.compare_exchange_strong(nobody, exit_status);
  }

 private:
  ThreadRanks& ranks_;
  int rank_;
};

std::unique_ptr<Communicator> ThreadRanks::communicator(int rank) {
  return std::make_unique<OfOneRank>(*this, rank);
}

}  // namespace shardwright

// SPDX-License-Identifier: Apache-2.0
#include "base/prepare_ahead.h"

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <new>
#include <thread>
#include <vector>

#include "base/fail.h"

namespace shardwright {
namespace {

// Files are waited for, so more threads than processors help; a few are enough to hide it.
constexpr std::size_t kThreads = 8;
// What is prepared and not taken yet needs memory.
constexpr std::size_t kAhead = 4 * kThreads;

class Preparing {
 public:
  Preparing(std::size_t count, const std::function<void(std::size_t)>& prepare)
      : prepare_(prepare), states_(count, State::kOpen) {
    for (std::size_t i = 0; i < std::min(count, kThreads); ++i) {
      try {
        threads_.emplace_back([this] { work(); });
      } catch (const std::exception&) {
        break;  // those that could be started do it, or whoever takes
      }
    }
  }

  ~Preparing() {
    const std::scoped_lock lock(mutex_);
    has_ended_ = true;
    changed_.notify_all();
  }

  Preparing(const Preparing&) = delete;
  Preparing& operator=(const Preparing&) = delete;

  // Returns when `i` is prepared; false without memory for that.
  bool wait_for(std::size_t i) {
    std::unique_lock lock(mutex_);
    taking_ = i;
    changed_.notify_all();
    if (threads_.empty()) prepare_one(i, lock);
    changed_.wait(lock, [&] { return states_[i] >= State::kReady; });
    return states_[i] == State::kReady;
  }

 private:
  enum class State : char { kOpen, kBegun, kReady, kFailed };

  void work() {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(
          lock, [&] { return has_ended_ || next_ == states_.size() || next_ < taking_ + kAhead; });
      if (has_ended_ || next_ == states_.size()) return;
      prepare_one(next_++, lock);
    }
  }

  void prepare_one(std::size_t i, std::unique_lock<std::mutex>& lock) {
    states_[i] = State::kBegun;
    lock.unlock();
    State state = State::kReady;
    try {
      prepare_(i);
    } catch (const std::bad_alloc&) {
      state = State::kFailed;
    }
    lock.lock();
    states_[i] = state;
    changed_.notify_all();
  }

  const std::function<void(std::size_t)>& prepare_;
  std::mutex mutex_;  // of what follows
  std::condition_variable changed_;
  std::vector<State> states_;
  std::size_t next_ = 0;    // to be begun
  std::size_t taking_ = 0;  // waited for
  bool has_ended_ = false;
  std::vector<std::jthread> threads_;  // last: they end before what they use
};

}  // namespace

Status prepare_ahead(std::size_t count, const std::function<void(std::size_t)>& prepare,
                     const std::function<Status(std::size_t)>& take) {
  if (count == 1) {  // one thread more would only take time
    prepare(0);
    return take(0);
  }
  Preparing preparing(count, prepare);
  for (std::size_t i = 0; i < count; ++i) {
    if (!preparing.wait_for(i)) return fail_out_of_memory();
    if (Status taken = take(i); !taken) return taken;
  }
  return {};
}

}  // namespace shardwright

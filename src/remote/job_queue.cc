// SPDX-License-Identifier: Apache-2.0
#include "remote/job_queue.h"

#include <new>
#include <system_error>
#include <utility>

#include "base/fail.h"

namespace shardwright {

// One more for each job that finds none idle.
Status JobQueue::start_thread() {
  const std::size_t wanted = busy_ + jobs_.size() + 1;
  if (threads_.size() >= wanted || threads_.size() >= static_cast<std::size_t>(most_threads_)) {
    return {};
  }
  try {
    threads_.emplace_back([this] { work(); });
  } catch (const std::system_error&) {
    if (threads_.empty()) return fail(Code::kOutOfMemory, "no thread can be started to send files");
  }
  return {};
}

Status JobQueue::add(Job job) {
  std::unique_lock lock(mutex_);
  if (!failure_ && !is_stopped_) SW_TRY(start_thread());
  changed_.wait(lock,
                [&] { return failure_ || is_stopped_ || jobs_.size() < 2 * threads_.size(); });
  if (failure_) return std::unexpected(*failure_);
  if (is_stopped_) return fail(Code::kCancelled, "stopped before all was sent");
  jobs_.push_back(std::move(job));
  changed_.notify_all();
  return {};
}

Status JobQueue::wait() {
  std::unique_lock lock(mutex_);
  changed_.wait(
      lock, [&] { return busy_ == 0 && (jobs_.empty() || failure_.has_value() || is_stopped_); });
  if (failure_) return std::unexpected(*failure_);
  return {};
}

void JobQueue::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return is_stopped_ || failure_ || !jobs_.empty(); });
    if (is_stopped_ || failure_) return;
    const Job job = std::move(jobs_.front());
    jobs_.pop_front();
    ++busy_;
    lock.unlock();
    Status status;
    try {
      status = job();
    } catch (const std::bad_alloc&) {
      status = fail(Code::kOutOfMemory, "no memory to send files");
    }
    lock.lock();
    --busy_;
    if (!status && !failure_) failure_ = std::move(status).error();
    changed_.notify_all();
  }
}

void JobQueue::stop() noexcept {
  std::vector<std::thread> ended;
  {
    const std::scoped_lock lock(mutex_);
    is_stopped_ = true;
    jobs_.clear();
    ended.swap(threads_);
    changed_.notify_all();
  }
  for (std::thread& thread : ended) thread.join();
}

}  // namespace shardwright

// SPDX-License-Identifier: Apache-2.0
#include "exec/threads.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>
#include <vector>

#include "base/fail.h"

namespace shardwright {

int thread_count(int asked) {
  if (asked > 0) return asked;
  return std::clamp(static_cast<int>(std::thread::hardware_concurrency()), 1, 16);
}

Status run_on_threads(int threads, const std::function<void()>& while_waiting,
                      const std::function<Status()>& body) {
  std::mutex mutex;
  std::condition_variable finished;
  int running = std::max(threads, 1);
  Status result;
  std::vector<std::jthread> pool;
  const auto work = [&] {
    Status status;
    try {
      status = body();
    } catch (const std::bad_alloc&) {
      status = fail_out_of_memory();
    }
    const std::scoped_lock lock(mutex);
    if (!status && result) result = std::move(status);
    --running;
    finished.notify_all();
  };
  for (int i = 0, count = running; i < count; ++i) {
    try {
      pool.emplace_back(work);
    } catch (const std::system_error&) {
      // Those that could be started do all the work.
      if (i == 0)
        return std::unexpected(
            Error{Code::kOutOfMemory, translated("no memory for a thread"), ENOMEM});
      const std::scoped_lock lock(mutex);
      running -= count - i;
      break;
    }
  }
  std::unique_lock lock(mutex);
  while (!finished.wait_for(lock, std::chrono::milliseconds(100), [&] { return running == 0; })) {
    lock.unlock();
    if (while_waiting) while_waiting();
    lock.lock();
  }
  return result;
}

}  // namespace shardwright

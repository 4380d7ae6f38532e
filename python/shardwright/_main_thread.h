// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nanobind/nanobind.h>

#include <atomic>
#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <utility>

namespace shardwright::python {

/// Work without the GIL. Of Python's main thread another thread does it, while that one runs the
/// handlers of signals, as only it can; once one raises, the work is to stop, requests to servers
/// are given up, and what was raised is raised when the work has ended. Other threads do their work
/// themselves, and so does what a callback or handler of such work calls.
class Work {
 public:
  Work();
  ~Work();
  Work(const Work&) = delete;
  Work& operator=(const Work&) = delete;

  /// Does it. REQUIRES: the calling thread holds the GIL.
  void run(const std::function<void()>& work);

  /// Of the work's own thread: calls `callback` with the GIL held, on the thread that called run().
  /// What it raises stops the work.
  void call(const std::function<void()>& callback);

  [[nodiscard]] const std::atomic<bool>& stopped() const { return *stopped_; }

 private:
  [[nodiscard]] std::exception_ptr run_beside(const std::function<void()>& work);
  void wait_and_serve();
  // REQUIRES: the GIL.
  void guarded(const std::function<void()>& callback);

  bool is_beside_;  // another thread does it
  std::atomic<bool> own_stop_{false};
  std::atomic<bool>* stopped_;
  std::exception_ptr raised_;  // by Python, first
  std::mutex mutex_;           // of what follows
  std::condition_variable changed_;
  const std::function<void()>* asked_ = nullptr;
  bool is_done_ = false;
};

/// What `work` gives.
template <class Function>
auto without_gil(const Function& work) {
  std::optional<decltype(work())> given;
  Work().run([&] { given.emplace(work()); });
  return *std::move(given);
}

}  // namespace shardwright::python

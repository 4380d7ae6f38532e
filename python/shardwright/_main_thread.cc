// SPDX-License-Identifier: Apache-2.0
#include "_main_thread.h"

#include <chrono>
#include <system_error>
#include <thread>

#include "remote/open_path.h"

namespace nb = nanobind;

namespace shardwright::python {
namespace {

// How long Ctrl-C waits at most before it is looked for.
constexpr std::chrono::milliseconds kPause{100};

// Other threads' requests may still look at it when the work that it stopped is over.
std::atomic<bool>& main_stop() {
  static constinit std::atomic<bool> stop{false};
  return stop;
}

// Whether another thread works for the main one. Guarded by the GIL.
bool& is_main_busy() {
  static constinit bool busy = false;
  return busy;
}

bool is_main_thread() {
  const nb::module_ threading = nb::module_::import_("threading");
  return threading.attr("current_thread")().is(threading.attr("main_thread")());
}

}  // namespace

Work::Work() : is_beside_(!is_main_busy() && is_main_thread()), stopped_(&own_stop_) {
  if (!is_beside_) return;
  is_main_busy() = true;
  stopped_ = &main_stop();
  *stopped_ = false;
}

Work::~Work() {
  if (stopped_ != &own_stop_) is_main_busy() = false;
}

void Work::run(const std::function<void()>& work) {
  std::exception_ptr failed;
  {
    const nb::gil_scoped_release unlocked;
    if (is_beside_) {
      failed = run_beside(work);
    } else {
      work();
    }
  }
  if (raised_) std::rethrow_exception(raised_);
  if (failed) std::rethrow_exception(failed);
}

std::exception_ptr Work::run_beside(const std::function<void()>& work) {
  const StoppableRequests requests(*stopped_);
  std::exception_ptr failed;
  std::thread worker;
  try {
    worker = std::thread([&] {
      try {
        work();
      } catch (...) {
        failed = std::current_exception();
      }
      const std::scoped_lock lock(mutex_);
      is_done_ = true;
      changed_.notify_all();
    });
  } catch (const std::system_error&) {  // no thread can be started: Ctrl-C waits
    is_beside_ = false;
    work();
    return nullptr;
  }
  wait_and_serve();
  worker.join();
  return failed;
}

void Work::wait_and_serve() {
  while (true) {
    const std::function<void()>* asked = nullptr;
    {
      std::unique_lock lock(mutex_);
      changed_.wait_for(lock, kPause, [&] { return is_done_ || asked_ != nullptr; });
      if (is_done_) return;
      asked = asked_;
    }
    {
      const nb::gil_scoped_acquire locked;
      guarded([&] {
        if (PyErr_CheckSignals() != 0) throw nb::python_error();
        if (asked != nullptr && !*stopped_) (*asked)();
      });
    }
    if (asked == nullptr) continue;
    const std::scoped_lock lock(mutex_);
    asked_ = nullptr;
    changed_.notify_all();
  }
}

void Work::call(const std::function<void()>& callback) {
  if (*stopped_) return;
  if (!is_beside_) {
    const nb::gil_scoped_acquire locked;
    guarded(callback);
    return;
  }
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return asked_ == nullptr; });
  asked_ = &callback;
  changed_.notify_all();
  changed_.wait(lock, [&] { return asked_ != &callback; });
}

void Work::guarded(const std::function<void()>& callback) {
  try {
    callback();
  } catch (...) {
    if (!raised_) raised_ = std::current_exception();
    *stopped_ = true;
  }
}

}  // namespace shardwright::python

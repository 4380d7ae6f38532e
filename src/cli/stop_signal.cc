// SPDX-License-Identifier: Apache-2.0
#include "cli/stop_signal.h"

#include <cstddef>

namespace shardwright::cli {
namespace {

// A handler gets no argument of ours: this is the one place where state must be static.
std::atomic<bool>& stop_flag() {
  static constinit std::atomic<bool> flag{false};
  static_assert(std::atomic<bool>::is_always_lock_free);
  return flag;
}

std::atomic<int>& stop_number() {
  static constinit std::atomic<int> number{0};
  static_assert(std::atomic<int>::is_always_lock_free);
  return number;
}

void on_signal(int signal) {
  int none = 0;
  stop_number().compare_exchange_strong(none, signal);
  stop_flag().store(true);
}

void install(int signal, struct sigaction& old) {
  ::sigaction(signal, nullptr, &old);
  if (old.sa_handler == SIG_IGN) return;
  struct sigaction action{};
  action.sa_handler = on_signal;
  action.sa_flags = static_cast<int>(SA_RESETHAND) | SA_RESTART;
  ::sigaction(signal, &action, nullptr);
}

}  // namespace

StopSignal::StopSignal() {
  stop_flag().store(false);
  stop_number().store(0);
  for (std::size_t i = 0; i < kSignals.size(); ++i) install(kSignals[i], old_[i]);
}

StopSignal::~StopSignal() {
  for (std::size_t i = 0; i < kSignals.size(); ++i) ::sigaction(kSignals[i], &old_[i], nullptr);
}

const std::atomic<bool>& StopSignal::flag() const { return stop_flag(); }

int StopSignal::signal() const { return stop_number(); }

}  // namespace shardwright::cli

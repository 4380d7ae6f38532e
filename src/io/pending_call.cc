// SPDX-License-Identifier: Apache-2.0
#include "io/pending_call.h"

#include <mutex>

namespace shardwright {
namespace {

struct PendingCalls {
  std::mutex mutex;
  IntrusiveList<PendingCall> list;
};

// One list: a thread's own variable would have to be made, and ended with it.
constinit PendingCalls pending_calls;

}  // namespace

PendingCall::PendingCall(const char* what, const std::string& name)
    : what_(what), name_(&name), begin_(std::chrono::steady_clock::now()) {
  const std::scoped_lock lock(pending_calls.mutex);
  pending_calls.list.add(*this);
}

PendingCall::~PendingCall() {
  const std::scoped_lock lock(pending_calls.mutex);
  pending_calls.list.remove(*this);
}

void PendingCall::renew() noexcept {
  const std::scoped_lock lock(pending_calls.mutex);
  begin_ = std::chrono::steady_clock::now();
}

std::optional<LongCall> longest_call() {
  const std::scoped_lock lock(pending_calls.mutex);
  const auto& list = pending_calls.list;
  const PendingCall* longest = list.first();
  if (longest == nullptr) return std::nullopt;
  for (const PendingCall* call = longest; call != nullptr; call = list.behind(*call)) {
    if (call->begin_ < longest->begin_) longest = call;
  }
  const auto now = std::chrono::steady_clock::now();
  return LongCall{longest->what_, *longest->name_, now - longest->begin_};
}

}  // namespace shardwright

// SPDX-License-Identifier: Apache-2.0
#include "io/pending_call.h"

#include <mutex>

namespace shardwright {
namespace {

struct PendingCalls {
  std::mutex mutex;  // of the list, and what its calls link
  PendingCall* first = nullptr;
};

// Needs no constructor and no destructor: threads may outlive what has one.
constinit PendingCalls pending_calls;

}  // namespace

PendingCall::PendingCall(const char* what, const std::string& name)
    : what_(what), name_(&name), begin_(std::chrono::steady_clock::now()) {
  const std::scoped_lock lock(pending_calls.mutex);
  behind_ = pending_calls.first;
  if (behind_ != nullptr) behind_->before_ = this;
  pending_calls.first = this;
}

PendingCall::~PendingCall() {
  const std::scoped_lock lock(pending_calls.mutex);
  (before_ != nullptr ? before_->behind_ : pending_calls.first) = behind_;
  if (behind_ != nullptr) behind_->before_ = before_;
}

void PendingCall::renew() noexcept {
  const std::scoped_lock lock(pending_calls.mutex);
  begin_ = std::chrono::steady_clock::now();
}

std::optional<LongCall> longest_call() {
  const std::scoped_lock lock(pending_calls.mutex);
  const PendingCall* longest = pending_calls.first;
  if (longest == nullptr) return std::nullopt;
  for (const PendingCall* call = longest; call != nullptr; call = call->behind_) {
    if (call->begin_ < longest->begin_) longest = call;
  }
  const auto now = std::chrono::steady_clock::now();
  return LongCall{longest->what_, *longest->name_, now - longest->begin_};
}

}  // namespace shardwright

// SPDX-License-Identifier: Apache-2.0
#include "io/begun_output.h"

#include <mutex>

namespace shardwright {
namespace {

struct BegunOutputs {
  std::mutex mutex;
  BegunOutput* first = nullptr;
};

// Needs no constructor and no destructor: threads may outlive what has one.
constinit BegunOutputs begun_outputs;

}  // namespace

BegunOutput::BegunOutput() noexcept {
  const std::scoped_lock lock(begun_outputs.mutex);
  behind_ = begun_outputs.first;
  if (behind_ != nullptr) behind_->before_ = this;
  begun_outputs.first = this;
}

void BegunOutput::forget() noexcept {
  const std::scoped_lock lock(begun_outputs.mutex);
  const bool is_listed = before_ != nullptr || begun_outputs.first == this;
  if (!is_listed) return;
  (before_ != nullptr ? before_->behind_ : begun_outputs.first) = behind_;
  if (behind_ != nullptr) behind_->before_ = before_;
  before_ = behind_ = nullptr;
}

void BegunOutput::abandon_all() noexcept {
  const std::scoped_lock lock(begun_outputs.mutex);
  for (BegunOutput* one = begun_outputs.first; one != nullptr; one = one->behind_) one->abandon();
}

}  // namespace shardwright

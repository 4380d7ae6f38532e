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

BegunOutput::BegunOutput() noexcept : is_listed_(true) {
  const std::scoped_lock lock(begun_outputs.mutex);
  next_ = begun_outputs.first;
  if (next_ != nullptr) next_->before_ = this;
  begun_outputs.first = this;
}

void BegunOutput::forget() noexcept {
  const std::scoped_lock lock(begun_outputs.mutex);
  if (!is_listed_) return;
  is_listed_ = false;
  (before_ != nullptr ? before_->next_ : begun_outputs.first) = next_;
  if (next_ != nullptr) next_->before_ = before_;
}

void BegunOutput::abandon_all() noexcept {
  const std::scoped_lock lock(begun_outputs.mutex);
  for (BegunOutput* one = begun_outputs.first; one != nullptr; one = one->next_) one->abandon();
}

}  // namespace shardwright

// SPDX-License-Identifier: Apache-2.0
#include "io/begun_output.h"

#include <mutex>

namespace shardwright {
namespace {

struct BegunOutputs {
  std::mutex mutex;
  IntrusiveList<BegunOutput> list;
};

constinit BegunOutputs begun_outputs;

}  // namespace

BegunOutput::BegunOutput() noexcept {
  const std::scoped_lock lock(begun_outputs.mutex);
  begun_outputs.list.add(*this);
}

void BegunOutput::forget() noexcept {
  const std::scoped_lock lock(begun_outputs.mutex);
  begun_outputs.list.remove(*this);
}

void BegunOutput::abandon_all() noexcept {
  const std::scoped_lock lock(begun_outputs.mutex);
  const auto& list = begun_outputs.list;
  for (BegunOutput* one = list.first(); one != nullptr; one = list.behind(*one)) one->abandon();
}

}  // namespace shardwright

// SPDX-License-Identifier: Apache-2.0
#include "io/retries.h"

#include <ctime>

namespace shardwright {

bool Retries::allow(int os_errno) {
  constexpr int kMost = 1000;
  constexpr int kMostWithoutWaiting = 100;
  constexpr long kWaitNanoseconds = 1'000'000;
  if (os_errno != EINTR && os_errno != EAGAIN) return false;
  if (++count_ > kMost) return false;
  if (count_ > kMostWithoutWaiting) {
    const timespec wait{0, kWaitNanoseconds};
    (void)::nanosleep(&wait, nullptr);
  }
  return true;
}

}  // namespace shardwright

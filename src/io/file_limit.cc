// SPDX-License-Identifier: Apache-2.0
#include "io/file_limit.h"

#include <sys/resource.h>

namespace shardwright {

std::uint64_t raise_open_file_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
  const rlimit raised{limit.rlim_max, limit.rlim_max};
  if (limit.rlim_cur < limit.rlim_max && ::setrlimit(RLIMIT_NOFILE, &raised) == 0) {
    return raised.rlim_cur;
  }
  return limit.rlim_cur;
}

}  // namespace shardwright

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "shardwright/error.h"

namespace shardwright {

/// How many threads to use: what was asked for, or for 0 one per processor, at most 16.
[[nodiscard]] int thread_count(int asked);

/// Runs `body` once on each of `threads` threads, which share out the work themselves, and returns
/// the first error. A thread that runs out of memory reports that (kOutOfMemory) instead of ending
/// the process; where not all threads can be started, fewer do the work. `while_waiting` (may be
/// empty) is called a few times a second on the calling thread.
[[nodiscard]] Status run_on_threads(int threads, const std::function<void()>& while_waiting,
                                    const std::function<Status()>& body);

}  // namespace shardwright

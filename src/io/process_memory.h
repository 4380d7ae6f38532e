// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "shardwright/error.h"

namespace shardwright {

/// Fills `bytes` with what a process of this machine has in its memory from `address` on. Both
/// processes must agree that nobody writes there meanwhile. Errors: kPermission where the system
/// keeps the processes apart, kIo where the process has ended or has no such memory.
[[nodiscard]] Status read_process_memory(pid_t process, std::uint64_t address,
                                         std::span<std::byte> bytes);

}  // namespace shardwright

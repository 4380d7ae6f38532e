// SPDX-License-Identifier: Apache-2.0
#include "io/process_memory.h"

#include <sys/uio.h>

#include <cerrno>

#include "base/fail.h"
#include "io/retries.h"

namespace shardwright {

Status read_process_memory(pid_t process, std::uint64_t address, std::span<std::byte> bytes) {
  const Transfer read = transfer(bytes.size(), [&](std::size_t done) {
    const iovec here = {bytes.data() + done, bytes.size() - done};
    // NOLINTNEXTLINE(performance-no-int-to-ptr): an address of the other process
    const iovec there = {reinterpret_cast<void*>(address + done), bytes.size() - done};
    return ::process_vm_readv(process, &here, 1, &there, 1, 0);
  });
  if (!read.ended && read.os_errno == 0) return {};
  return fail_errno(
      read.ended ? EIO : read.os_errno,
      translated("process {}: cannot read {} bytes of its memory", process, bytes.size()));
}

}  // namespace shardwright

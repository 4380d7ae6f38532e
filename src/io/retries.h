// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cerrno>
#include <cstddef>

namespace shardwright {

/// Bounds how often a system call is made again that was interrupted and moved nothing: a broken
/// file system may answer so for ever, and then nothing could stop the process.
class Retries {
 public:
  /// Whether to make the call again after this errno; waits a moment where that may help.
  [[nodiscard]] bool allow(int os_errno);
  /// The call got on.
  void reset() { count_ = 0; }

 private:
  int count_ = 0;
};

/// How far a read or write of many bytes came.
struct Transfer {
  std::size_t done = 0;
  int os_errno = 0;    ///< of the call that failed; 0 where none did
  bool ended = false;  ///< a call moved nothing without an error: a read is at the end
};

/// Calls `step(done)`, which moves bytes from there on as pread and pwrite do and gives their
/// number or -1 with errno, until `total` bytes are moved or nothing more can be.
template <class Step>
[[nodiscard]] Transfer transfer(std::size_t total, Step step) {
  Transfer result;
  Retries retries;
  while (result.done < total) {
    const ssize_t count = step(result.done);
    if (count > 0) {
      result.done += static_cast<std::size_t>(count);
      retries.reset();
    } else if (count == 0) {
      result.ended = true;
      return result;
    } else if (const int os_errno = errno; !retries.allow(os_errno)) {
      result.os_errno = os_errno;
      return result;
    }
  }
  return result;
}

}  // namespace shardwright

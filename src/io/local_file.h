// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <sys/stat.h>

#include <cstdint>
#include <memory>
#include <string>

#include "io/unique_fd.h"
#include "shardwright/storage.h"

namespace shardwright {

/// How a file is opened for reading. Not waiting: a FIFO would make us wait for its writer; what is
/// no regular file is refused afterwards.
inline constexpr int kReadingFlags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;

/// The whole of a file. Error: kLimit when it is larger than `limit_bytes`.
[[nodiscard]] Result<std::string> read_all(const ReadableFile& file, std::uint64_t limit_bytes);

/// What the file system says of a file.
[[nodiscard]] FileVersion version_of(const struct stat& status);

/// Takes an open descriptor; refuses what is not a regular file (a FIFO would block a reader, a
/// device has no end). Error: kNotAFile.
[[nodiscard]] Result<std::unique_ptr<ReadableFile>> make_readable(UniqueFd fd, std::string name);

/// Takes a descriptor of a new empty file and reserves `size` bytes, so that a full disk is found
/// before the work instead of after it. Error: kDiskFull, kIo.
[[nodiscard]] Result<std::unique_ptr<WritableFile>> make_writable(UniqueFd fd, std::string name,
                                                                  std::uint64_t size);

}  // namespace shardwright

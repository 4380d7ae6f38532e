// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "io/unique_fd.h"
#include "shardwright/storage.h"

namespace shardwright {

/// Takes an open descriptor; refuses what is not a regular file (a FIFO would block a reader, a
/// device has no end). Error: kIo.
[[nodiscard]] Result<std::unique_ptr<ReadableFile>> make_readable(UniqueFd fd, std::string name);

/// Takes a descriptor of a new empty file and reserves `size` bytes, so that a full disk is found
/// before the work instead of after it. Error: kDiskFull, kIo.
[[nodiscard]] Result<std::unique_ptr<WritableFile>> make_writable(UniqueFd fd, std::string name,
                                                                  std::uint64_t size);

}  // namespace shardwright

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "shardwright/storage.h"

namespace shardwright {

/// Opens a file that the user named, be it a link to anywhere: only names that come from a
/// checkpoint are kept inside its folder. Errors: kNotFound, kPermission, kNotAFile.
[[nodiscard]] Result<std::unique_ptr<ReadableFile>> open_named_file(const std::string& path);

/// What such a file is now. Errors: as opening it.
[[nodiscard]] Result<FileVersion> version_of_named_file(const std::string& path);

/// The whole of such a file. Error: kLimit when it is larger than `limit_bytes`.
[[nodiscard]] Result<std::string> read_named_file(const std::string& path,
                                                  std::uint64_t limit_bytes);

}  // namespace shardwright

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "shardwright/storage.h"

namespace shardwright {

/// The files in a tar archive as a directory that can only be read; nothing is unpacked. Errors:
/// those of opening the file and of read_tar.
[[nodiscard]] Result<std::unique_ptr<Directory>> open_tar_directory(const std::string& path);

}  // namespace shardwright

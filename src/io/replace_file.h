// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "shardwright/error.h"

namespace shardwright {

/// Writes a file in one step: whoever opens it sees the old bytes or the new ones, also after a
/// crash. Where the path is a link, the link is replaced, not what it points to. Errors: kIo,
/// kDiskFull, kPermission, kNotFound (the folder).
[[nodiscard]] Status replace_file(const std::string& path, std::string_view bytes);

/// Copies bytes to a new file beside `path`, `.bak` or the first free of `.bak1`, `.bak2`, ..., and
/// gives its path. Errors: as above.
[[nodiscard]] Result<std::string> write_backup(const std::string& path, std::string_view bytes);

}  // namespace shardwright

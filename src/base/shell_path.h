// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace shardwright {

/// A path as a POSIX shell and a command behind it read it back: in quotes where it needs them, and
/// with `./` in front where it would be taken for a flag.
[[nodiscard]] std::string shell_path(std::string_view path);

}  // namespace shardwright

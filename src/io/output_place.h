// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

#include "shardwright/error.h"

namespace shardwright {

/// The absolute path with the links of everything that exists resolved.
[[nodiscard]] Result<std::filesystem::path> resolved_output(const std::string& path);

/// A target and a source may not be one inside the other, by name or (bind mounts) by identity;
/// `may_be_inside`: the target may lie in the source. Error: kTargetInsideSource.
[[nodiscard]] Status check_apart(const std::filesystem::path& target, const std::string& source,
                                 bool may_be_inside);

[[nodiscard]] bool is_mount_point(const std::filesystem::path& path);

/// The nearest folder above `path` that exists.
[[nodiscard]] std::filesystem::path existing_ancestor(const std::filesystem::path& path);

/// Refuses what is there and is no folder, a link included. Error: kTargetExists.
[[nodiscard]] Status check_is_folder(const std::filesystem::path& target);

/// Refuses a folder that no output may take the place of, whatever is in it: the root, a mount
/// point, one that is or holds a home or the current directory. Error: kTargetExists.
[[nodiscard]] Status check_may_be_replaced(const std::string& folder);

}  // namespace shardwright

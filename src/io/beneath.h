// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "io/unique_fd.h"
#include "shardwright/error.h"

namespace shardwright {

/// Whether `path` is made of plain names joined by single slashes. Refuses (kPathEscapes) the empty
/// path, absolute paths, `.` and `..`, empty names, names over 255 bytes and NUL: names come from
/// inside files, and a NUL would make the checked name and the opened one differ.
[[nodiscard]] Status check_relative_path(std::string_view path);

/// `a/b/c` as (`a/b`, `c`); `c` as ("", `c`).
[[nodiscard]] std::pair<std::string_view, std::string_view> split_last(std::string_view path);

/// Opens the folder `path` ("" is `root` itself) without leaving `root`, be it through a link.
/// Error: kNotFound, kPathEscapes. `path` must have passed check_relative_path.
[[nodiscard]] Result<UniqueFd> open_folder_beneath(int root, std::string_view path);

/// The same for kernels without openat2: follows no links at all, even those that stay inside.
[[nodiscard]] Result<UniqueFd> walk_to_folder(int root, std::string_view path);

/// As walk_to_folder, but makes the folders that are missing. Links are refused: what is written
/// must land where its name says.
[[nodiscard]] Result<UniqueFd> make_folders_beneath(int root, std::string_view path);

}  // namespace shardwright

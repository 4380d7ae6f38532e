// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "shardwright/storage.h"

namespace shardwright {

/// What aria2 puts behind the name of a file that has its full size but is not filled yet.
inline constexpr std::string_view kUnfilledEnding = ".aria2";

/// Whether that is what a downloading program calls a file until it is complete.
[[nodiscard]] bool is_unfinished_download(std::string_view name);

/// The file that says that `path` is still being downloaded, or was given up: beside it
/// (`x.part`, `x.aria2`) or in the cache of huggingface_hub. `path` is relative to `directory`.
[[nodiscard]] std::optional<std::string> unfinished_download_of(const Directory& directory,
                                                                std::string_view path);

/// Adds to the error of a file that is not there (kNotFound) that it was not downloaded to its end,
/// where that shows.
[[nodiscard]] Error with_download_hint(Error error, const Directory& directory,
                                       std::string_view path);

/// Fails (kShortRead) for a file of full size that aria2 has not filled yet.
[[nodiscard]] Status check_downloaded(const Directory& directory, std::string_view path);

}  // namespace shardwright

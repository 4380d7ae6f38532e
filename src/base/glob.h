// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "shardwright/error.h"

namespace shardwright {

/// Whether `name` matches a shell pattern (`*` also matches dots).
[[nodiscard]] bool matches_glob(std::string_view pattern, std::string_view name);

/// Up to three names that share most with the text of a pattern that none of them matches; empty
/// where none comes near it.
[[nodiscard]] std::vector<std::string_view> near_glob(std::string_view pattern,
                                                      std::span<const std::string_view> names);

/// Fails (kUsage) with the first pattern that matches none of the names, and says what is near it.
/// `flag` is how the user gave it.
[[nodiscard]] Status check_globs(std::string_view flag, std::span<const std::string> patterns,
                                 std::span<const std::string_view> names);

}  // namespace shardwright

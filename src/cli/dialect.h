// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <vector>

namespace shardwright::cli {

/// Spells flags as the options' names are: `-` for `_` in long ones, whose value may stand behind
/// `=`, and `--tp` for the `-tp` that people write. Values are not changed, nor is anything after
/// `--`.
[[nodiscard]] std::vector<std::string> to_canonical_flags(std::span<const std::string> arguments);

}  // namespace shardwright::cli

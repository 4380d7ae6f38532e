// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "cli/command_outline.h"

namespace shardwright::cli {

enum class Shell : std::uint8_t { kBash, kZsh, kFish };

/// `bash`, `zsh`, `fish`, in the order of Shell.
[[nodiscard]] std::vector<std::string> shell_names();

/// The script that completes the program's command lines in a shell.
[[nodiscard]] std::string completion_script(Shell shell, std::span<const CommandOutline> commands);

}  // namespace shardwright::cli

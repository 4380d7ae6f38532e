// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>

#include "cli/command_outline.h"

namespace shardwright::cli {

/// shardwright(1), for man: every command with its flags.
[[nodiscard]] std::string man_page(std::span<const CommandOutline> commands);

}  // namespace shardwright::cli

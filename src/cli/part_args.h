// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>

#include "cli/args.h"
#include "cli/help.h"

namespace shardwright::cli {

// The arguments of the commands that put a model's parts together and take it apart. Errors:
// kUsage.

[[nodiscard]] Result<Command> parse_merge(const CommandHelp& help,
                                          std::span<const std::string> arguments);
[[nodiscard]] Result<Command> parse_split(const CommandHelp& help,
                                          std::span<const std::string> arguments);

}  // namespace shardwright::cli

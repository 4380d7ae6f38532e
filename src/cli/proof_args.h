// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>

#include "cli/args.h"
#include "cli/help.h"

namespace shardwright::cli {

// The arguments of the commands that compare and prove. Errors: kUsage.

[[nodiscard]] Result<Command> parse_verify(const CommandHelp& help,
                                           std::span<const std::string> arguments);
[[nodiscard]] Result<Command> parse_diff(const CommandHelp& help,
                                         std::span<const std::string> arguments);
[[nodiscard]] Result<Command> parse_hash(const CommandHelp& help,
                                         std::span<const std::string> arguments);
[[nodiscard]] Result<Command> parse_show(const CommandHelp& help,
                                         std::span<const std::string> arguments);
[[nodiscard]] Result<Command> parse_index(const CommandHelp& help,
                                          std::span<const std::string> arguments);

}  // namespace shardwright::cli

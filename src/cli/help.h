// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string>
#include <string_view>

namespace shardwright::cli {

/// What help says about a command before its flags.
struct CommandHelp {
  std::string_view name;
  std::string_view summary;   ///< one line, in the list of commands
  std::string_view examples;  ///< two to four command lines with what they do
  std::string_view usage;     ///< the arguments behind the command's name
  std::string_view details;   ///< one paragraph
};

inline constexpr std::size_t kCommandCount = 22;
[[nodiscard]] const std::array<CommandHelp, kCommandCount>& command_helps();
/// nullptr for an unknown name.
[[nodiscard]] const CommandHelp* find_command(std::string_view name);

/// `shardwright --help`.
[[nodiscard]] std::string overview_text();
/// `shardwright 0.1.0`.
[[nodiscard]] std::string version_text();

}  // namespace shardwright::cli

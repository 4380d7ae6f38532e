// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "cli/show_text.h"
#include "shardwright/error.h"

namespace CLI {
class App;
}

namespace shardwright::cli {

struct CommandHelp;

/// The program's commands. Their options are declared as options.h says.
class CommandLine {
 public:
  CommandLine();
  ~CommandLine();
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;

  /// `take` is called when the command was chosen and all of its arguments are right.
  CLI::App& add_command(const CommandHelp& help, std::function<void(const CLI::App& app)> take);

  /// What is declared on this may stand before a command's name; where the command's own flags say
  /// otherwise, they win.
  CLI::App& before_commands() { return *root_; }

  /// Gives a text where that is all that was asked for: the version, or help, which wins over
  /// everything that may be wrong. Error: kUsage.
  [[nodiscard]] Result<std::optional<ShowText>> parse(std::span<const std::string> arguments);

 private:
  std::unique_ptr<CLI::App> root_;
};

/// A word that must follow the command's name, as `check` in `map check`. It takes the command's
/// flags too.
CLI::App& add_action(CLI::App& command, const std::string& name);

}  // namespace shardwright::cli

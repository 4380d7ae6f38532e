// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace shardwright::cli {

/// A flag as help shows it.
struct FlagOutline {
  std::string name;                  ///< `--tp`
  std::string letter;                ///< `-q`; empty where it has none
  std::string type;                  ///< `N`; empty where it takes no value
  std::string text;                  ///< what it does
  std::vector<std::string> choices;  ///< the words that its value may be, where they are few
};

struct CommandOutline {
  std::string name;
  std::string summary;
  std::string usage;
  std::string details;
  std::string examples;
  std::vector<std::string> actions;  ///< words that follow its name: `rebuild`
  std::vector<std::string> words;    ///< what its argument may be, where they are few
  std::vector<FlagOutline> flags;
};

/// Every command of the program that `command` is one of.
[[nodiscard]] std::vector<CommandOutline> outline_of(const CLI::App& command);

}  // namespace shardwright::cli

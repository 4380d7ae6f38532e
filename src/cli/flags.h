// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cli/args.h"
#include "cli/help.h"

namespace CLI {
class App;
}

namespace shardwright::cli {

/// One command's flags. What is given to it must live until parse() has returned.
class Flags {
 public:
  explicit Flags(const CommandHelp& help);
  ~Flags();
  Flags(const Flags&) = delete;
  Flags& operator=(const Flags&) = delete;

  void positional(const char* name, std::string& value);
  void positional(const char* name, std::optional<std::string>& value);
  /// `type` and `text` are what the help shows.
  void value(const char* name, std::string& value, const char* type, const char* text);
  void value(const char* name, std::optional<std::string>& value, const char* type,
             const char* text);
  void values(const char* name, std::vector<std::string>& value, const char* type,
              const char* text);
  void flag(const char* name, bool& value, const char* text);
  /// One that the help does not show.
  void hidden_value(const char* name, std::string& value);

  /// True when help was asked for, which wins over everything that may be missing. Error: kUsage.
  [[nodiscard]] Result<bool> parse(std::span<const std::string> arguments);
  [[nodiscard]] ShowText help() const;

 private:
  [[nodiscard]] std::string see_help() const;
  [[nodiscard]] std::unexpected<Error> refuse(const std::string& extra) const;

  const CommandHelp* help_;
  std::unique_ptr<CLI::App> app_;
  bool asks_help_ = false;
};

/// `--models DIR` for tests and development, by default of $SHARDWRIGHT_MODELS.
void add_models(Flags& flags, std::string& models);

}  // namespace shardwright::cli

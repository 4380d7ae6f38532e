// SPDX-License-Identifier: Apache-2.0
#include "cli/flags.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>

#include "base/edit_distance.h"
#include "base/fail.h"
#include "base/text.h"
#include "cli/table.h"

namespace shardwright::cli {
namespace {

std::string wrapped(std::string_view paragraph, std::size_t columns) {
  std::string text;
  std::size_t line = 0;
  while (!paragraph.empty()) {
    const std::size_t end = std::min(paragraph.find(' '), paragraph.size());
    if (line > 0 && line + 1 + end > columns) {
      text += '\n';
      line = 0;
    } else if (line > 0) {
      text += ' ';
      ++line;
    }
    text += paragraph.substr(0, end);
    line += end;
    paragraph.remove_prefix(std::min(end + 1, paragraph.size()));
  }
  return text;
}

}  // namespace

Flags::Flags(const CommandHelp& help) : help_(&help), app_(std::make_unique<CLI::App>()) {
  app_->set_help_flag("");
  app_->allow_extras();
  app_->add_flag("-h,--help", asks_help_, "this text");
}

Flags::~Flags() = default;

void Flags::positional(const char* name, std::string& value) {
  app_->add_option(name, value)->group("");
}

void Flags::positional(const char* name, std::optional<std::string>& value) {
  app_->add_option(name, value)->group("");
}

void Flags::value(const char* name, std::string& value, const char* type, const char* text) {
  app_->add_option(name, value, text)->type_name(type);
}

void Flags::value(const char* name, std::optional<std::string>& value, const char* type,
                  const char* text) {
  app_->add_option(name, value, text)->type_name(type);
}

void Flags::values(const char* name, std::vector<std::string>& value, const char* type,
                   const char* text) {
  // One value per flag: otherwise the list would swallow the paths behind it.
  app_->add_option(name, value, text)
      ->type_name(type)
      ->expected(1)
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

void Flags::flag(const char* name, bool& value, const char* text) {
  app_->add_flag(name, value, text);
}

void Flags::hidden_value(const char* name, std::string& value) {
  app_->add_option(name, value)->group("");
}

Result<bool> Flags::parse(std::span<const std::string> arguments) {
  std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());
  try {
    app_->parse(std::move(reversed));
  } catch (const CLI::Error& error) {
    if (asks_help_) return true;
    return fail(Code::kUsage, "{}: {}; {}", help_->name, printable(error.what()), see_help());
  }
  if (asks_help_) return true;
  for (const std::string& extra : app_->remaining()) {
    if (extra != "--") return refuse(extra);
  }
  return false;
}

ShowText Flags::help() const {
  Table table({{}, {}});
  for (const CLI::Option* option : std::as_const(*app_).get_options()) {
    if (option->get_group().empty()) continue;
    table.add_row(
        {option->get_name(false, true) + " " + option->get_type_name(), option->get_description()});
  }
  constexpr std::size_t kColumns = 96;
  const std::string_view space = help_->usage.empty() ? "" : " ";
  return {fmt::format("Examples:{}\n{}\n\nUsage: shardwright {}{}{} [FLAGS]\n\nFlags:\n{}",
                      help_->examples, wrapped(help_->details, kColumns), help_->name, space,
                      help_->usage, table.text(2))};
}

std::string Flags::see_help() const {
  return fmt::format("see 'shardwright {} --help'", help_->name);
}

std::unexpected<Error> Flags::refuse(const std::string& extra) const {
  if (extra.size() < 2 || extra[0] != '-') {
    return fail(Code::kUsage, "{}: found one argument too many, '{}', expected {}; {}", help_->name,
                printable(extra), help_->usage.empty() ? "none" : help_->usage, see_help());
  }
  std::vector<std::string> names;
  for (const CLI::Option* option : std::as_const(*app_).get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  const std::vector<std::string_view> candidates(names.begin(), names.end());
  const std::string flag = extra.substr(0, extra.find('='));
  const std::string_view meant = nearest_of(flag, candidates);
  return fail(Code::kUsage, "{}: found the unknown flag {}; {}", help_->name, printable(flag),
              meant.empty() ? see_help() : fmt::format("did you mean {}?", meant));
}

void add_models(Flags& flags, std::string& models) {
  const char* given = std::getenv("SHARDWRIGHT_MODELS");
  models = given == nullptr ? "" : given;
  flags.hidden_value("--models", models);
}

}  // namespace shardwright::cli

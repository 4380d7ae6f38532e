// SPDX-License-Identifier: Apache-2.0
#include "cli/command_line.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "base/edit_distance.h"
#include "base/fail.h"
#include "base/text.h"
#include "cli/console_args.h"
#include "cli/help.h"
#include "cli/options.h"
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

// `-v,--verbose`: of long names only the first, others are other tools' spellings.
std::string name_of(const CLI::Option& option) {
  const auto& shorts = option.get_snames();
  return (shorts.empty() ? "" : "-" + shorts.front() + ",") + "--" + option.get_lnames().front();
}

enum class Rows : std::uint8_t { kOwn, kConsole };

void add_rows(const CLI::App& app, Rows rows, Table& table) {
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_group().empty() || option->get_positional()) continue;
    if ((option->get_group() == kConsoleGroup) != (rows == Rows::kConsole)) continue;
    if (option == app.get_help_ptr() && app.get_parent()->get_parent() != nullptr) continue;
    table.add_row({name_of(*option) + " " + option->get_type_name(), option->get_description()});
  }
  for (const CLI::App* action : app.get_subcommands({})) add_rows(*action, rows, table);
}

std::string help_text(const CommandHelp& help, const CLI::App& app) {
  Table own({{}, {}});
  add_rows(app, Rows::kOwn, own);
  Table console({{}, {}});
  add_rows(app, Rows::kConsole, console);
  constexpr std::size_t kColumns = 96;
  const std::string_view space = help.usage.empty() ? "" : " ";
  return fmt::format("Examples:{}\n{}\n\nUsage: shardwright {}{}{} [FLAGS]\n\nFlags:\n{}\n{}:\n{}",
                     help.examples, wrapped(help.details, kColumns), help.name, space, help.usage,
                     own.text(2), kConsoleGroup, console.text(2));
}

std::string see_help(const CLI::App& app) {
  const bool is_root = app.get_parent() == nullptr;
  return translated("see 'shardwright {}--help'", is_root ? "" : app.get_name() + " ");
}

std::string hint(std::string_view given, const std::vector<std::string>& names,
                 const CLI::App& app) {
  const std::vector<std::string_view> candidates(names.begin(), names.end());
  const std::string_view meant = nearest_of(given, candidates);
  return meant.empty() ? see_help(app) : translated("did you mean {}?", meant);
}

std::vector<std::string> flags_of(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

// No word, or another word, where one of the app's commands must stand.
std::unexpected<Error> refuse_command(const CLI::App& app, const std::vector<std::string>& rest) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands({})) names.push_back(command->get_name());
  const std::string listed = word_list({names.begin(), names.end()});
  if (rest.empty()) {
    return fail(Code::kUsage, "{}: name a command: {}; {}", app.get_name(), listed, see_help(app));
  }
  std::ranges::copy(flags_of(app), std::back_inserter(names));
  return fail(Code::kUsage, "{}: found '{}', expected {}; {}", app.get_name(),
              printable(rest.front()), listed, hint(rest.front(), names, app));
}

std::unexpected<Error> refuse_extra(const CLI::App& app, const std::string& extra,
                                    std::span<const std::string> arguments) {
  const CommandHelp& help = *find_command(app.get_name());
  const auto end_of_flags = std::ranges::find(arguments, "--");
  if (extra.starts_with('-') &&
      std::find(end_of_flags, arguments.end(), extra) != arguments.end()) {
    return fail(Code::kUsage,
                "{}: '{}' stands behind '--', where all words are paths; put flags before it",
                help.name, printable(extra));
  }
  if (extra.size() < 2 || extra[0] != '-') {
    return fail(Code::kUsage, "{}: '{}' is one argument too many; it takes {}; {}", help.name,
                printable(extra), help.usage.empty() ? translated("none") : help.usage,
                see_help(app));
  }
  const std::string flag = extra.substr(0, extra.find('='));
  std::vector<std::string> flags = flags_of(app);
  if (std::ranges::find(flags, flag) != flags.end()) {
    return fail(Code::kUsage, "{} belongs behind the command: shardwright {} ... {}", flag,
                help.name, flag);
  }
  for (const CLI::App* action : app.get_subcommands({})) {
    std::ranges::copy(flags_of(*action), std::back_inserter(flags));
  }
  if (std::ranges::find(flags, flag) != flags.end()) {
    return fail(Code::kUsage, "{}: {} goes with another of its commands; {}", help.name, flag,
                see_help(app));
  }
  return fail(Code::kUsage, "{}: unknown flag {}; {}", help.name, printable(flag),
              hint(flag, flags, app));
}

const CLI::Option* missing_option(const CLI::App& app) {
  const auto options = app.get_options();
  const auto missing = std::ranges::find_if(options, [](const CLI::Option* option) {
    return option->get_required() && option->count() == 0;
  });
  return missing == options.end() ? nullptr : *missing;
}

bool asks_for_help(const CLI::App& app) {
  const auto chosen = app.get_subcommands();
  return app.get_help_ptr()->count() > 0 || (!chosen.empty() && asks_for_help(*chosen.front()));
}

// Whether every word has a place, the most telling of mistakes: an unknown one may be why
// something else is missing. REQUIRES: a command was chosen.
Status check_words(const CLI::App& command, const std::vector<std::string>& rest,
                   std::span<const std::string> arguments) {
  const bool lacks_action =
      !command.get_subcommands({}).empty() && command.get_subcommands().empty();
  if (lacks_action) return refuse_command(command, rest);
  if (!rest.empty()) return refuse_extra(command, rest.front(), arguments);
  return {};
}

// What CLI11 says, in plain words and in the language spoken.
std::string said_of(const CLI::Error& error) {
  const std::string what = printable(error.what());
  const auto both_sides = [&](std::string_view verb) {
    const std::size_t at = what.find(verb);
    const bool has = at != std::string::npos;
    return std::pair(what.substr(0, at), has ? what.substr(at + verb.size()) : std::string());
  };
  if (dynamic_cast<const CLI::RequiresError*>(&error) != nullptr) {
    const auto [flag, other] = both_sides(" requires ");
    return translated("{} requires {}", flag, other);
  }
  if (dynamic_cast<const CLI::ExcludesError*>(&error) != nullptr) {
    const auto [flag, other] = both_sides(" excludes ");
    return translated("{} excludes {}", flag, other);
  }
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr) {
    const auto [flag, counts] = both_sides(":");
    if (counts.contains("At Most")) return translated("{} is given more than once", flag);
    if (counts.contains("missing")) return translated("{} is given without its value", flag);
  }
  return what;
}

// A flag that was given without the one that it goes with.
std::string lacks_companion(const CLI::App& app) {
  for (const CLI::Option* option : app.get_options()) {
    if (option->count() == 0) continue;
    for (const CLI::Option* other : option->get_needs()) {
      if (other->count() == 0) {
        return translated("{} requires {}", option->get_name(), other->get_name());
      }
    }
  }
  return {};
}

Status refuse(const CLI::App& command, const CLI::Error& error) {
  const std::string what = said_of(error);
  // A value that is wrong may belong to a flag without which nothing were missing.
  if (dynamic_cast<const CLI::ValidationError*>(&error) != nullptr) {
    return fail(Code::kUsage, "{}", what);
  }
  const auto actions = command.get_subcommands();
  const CLI::App& asked = actions.empty() ? command : *actions.front();
  if (const std::string lacking = lacks_companion(asked); !lacking.empty()) {
    return fail(Code::kUsage, "{}: {}; {}", command.get_name(), lacking, see_help(command));
  }
  const CLI::Option* missing = missing_option(asked);
  if (missing != nullptr) {
    return fail(Code::kUsage, "{} is missing; give {}", missing->get_name(),
                missing->get_description());
  }
  return fail(Code::kUsage, "{}: {}; {}", command.get_name(), what, see_help(command));
}

// What a command line comes to that CLI11 took, or did not take because of `error`.
Result<std::optional<ShowText>> judge(const CLI::App& root, const CLI::Error* error,
                                      std::span<const std::string> arguments) {
  std::vector<std::string> rest = root.remaining(true);
  std::erase(rest, "--");
  const auto chosen = root.get_subcommands();
  const bool asks_help = asks_for_help(root);
  if (chosen.empty() && !(asks_help && rest.empty())) return refuse_command(root, rest);
  if (asks_help) return ShowText{root.help()};
  SW_TRY(check_words(*chosen.front(), rest, arguments));
  if (error != nullptr) SW_TRY(refuse(*chosen.front(), *error));
  return std::nullopt;
}

}  // namespace

CommandLine::CommandLine() : root_(std::make_unique<CLI::App>("", "shardwright")) {
  root_->set_help_flag("-h,--help", "this text");
  root_->set_version_flag("-V,--version", version_text());
  root_->formatter_fn(
      [](const CLI::App*, const std::string&, CLI::AppFormatMode) { return overview_text(); });
  // What is left over is refused with hints; a path may have a command's name.
  root_->allow_extras();
  root_->require_subcommand(0, 1);
}

CommandLine::~CommandLine() = default;

CLI::App& CommandLine::add_command(const CommandHelp& help,
                                   std::function<void(const CLI::App& app)> take) {
  CLI::App* app = root_->add_subcommand(std::string(help.name), std::string(help.summary));
  app->formatter_fn([app, &help](const CLI::App*, const std::string&, CLI::AppFormatMode) {
    return help_text(help, *app);
  });
  app->callback([app, take = std::move(take)] { take(*app); });
  return *app;
}

Result<std::optional<ShowText>> CommandLine::parse(std::span<const std::string> arguments) {
  try {
    root_->parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  } catch (const CLI::CallForVersion&) {
    return ShowText{version_text(), true};
  } catch (const CLI::Error& error) {
    return judge(*root_, &error, arguments);
  }
  return judge(*root_, nullptr, arguments);
}

CLI::App& add_action(CLI::App& command, const std::string& name) {
  command.require_subcommand(1, 1);
  return *command.add_subcommand(name)->fallthrough();
}

}  // namespace shardwright::cli

// SPDX-License-Identifier: Apache-2.0
#include "cli/command_outline.h"

#include <CLI/CLI.hpp>
#include <algorithm>

#include "cli/completion.h"
#include "cli/help.h"
#include "format/targets.h"

namespace shardwright::cli {
namespace {

// The words of `keep|drop|from=DIR` that are whole.
std::vector<std::string> words_of_type(std::string_view type) {
  std::vector<std::string> words;
  if (type.find('|') == std::string_view::npos) return words;
  while (!type.empty()) {
    const std::size_t end = std::min(type.find('|'), type.size());
    const std::string_view word = type.substr(0, end);
    if (word.find('=') == std::string_view::npos) words.emplace_back(word);
    type.remove_prefix(std::min(end + 1, type.size()));
  }
  return words;
}

FlagOutline flag_of(const CLI::Option& option) {
  FlagOutline flag;
  flag.name = "--" + option.get_lnames().front();
  if (!option.get_snames().empty()) flag.letter = "-" + option.get_snames().front();
  flag.text = option.get_description();
  if (option.get_items_expected_max() == 0) return flag;
  flag.type = option.get_type_name();
  flag.choices = words_of_type(flag.type);
  if (flag.name == "--to") {
    for (const Target* target : all_targets()) flag.choices.emplace_back(target->traits().name);
  }
  return flag;
}

void add_flags(const CLI::App& app, CommandOutline& outline) {
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_group().empty() || option->get_positional()) continue;
    FlagOutline flag = flag_of(*option);
    if (std::ranges::find(outline.flags, flag.name, &FlagOutline::name) == outline.flags.end()) {
      outline.flags.push_back(std::move(flag));
    }
  }
  for (const CLI::App* action : app.get_subcommands({})) {
    outline.actions.push_back(action->get_name());
    add_flags(*action, outline);
  }
}

}  // namespace

std::vector<CommandOutline> outline_of(const CLI::App& command) {
  std::vector<CommandOutline> outlines;
  for (const CLI::App* app : command.get_parent()->get_subcommands({})) {
    const CommandHelp& help = *find_command(app->get_name());
    CommandOutline outline;
    outline.name = help.name;
    outline.summary = help.summary;
    outline.usage = help.usage;
    outline.details = help.details;
    outline.examples = help.examples;
    if (help.name == "completion") outline.words = shell_names();
    add_flags(*app, outline);
    outlines.push_back(std::move(outline));
  }
  return outlines;
}

}  // namespace shardwright::cli

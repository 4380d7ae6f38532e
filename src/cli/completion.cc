// SPDX-License-Identifier: Apache-2.0
#include "cli/completion.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <iterator>
#include <string_view>

#include "base/text.h"

namespace shardwright::cli {
namespace {

std::vector<std::string> flag_names(const CommandOutline& command) {
  std::vector<std::string> names;
  for (const FlagOutline& flag : command.flags) {
    names.push_back(flag.name);
    if (!flag.letter.empty()) names.push_back(flag.letter);
  }
  return names;
}

bool is_path(const FlagOutline& flag) {
  return flag.type == "DIR" || flag.type == "FILE" || flag.type == "PATH";
}

// What stands where a command's first argument is.
std::vector<std::string> first_words(const CommandOutline& command) {
  std::vector<std::string> words = command.actions;
  words.insert(words.end(), command.words.begin(), command.words.end());
  return words;
}

std::string with_escapes(std::string_view text, std::string_view special) {
  std::string escaped;
  for (const char c : text) {
    if (special.find(c) != std::string_view::npos) escaped += '\\';
    escaped += c;
  }
  return escaped;
}

std::string bash_script(std::span<const CommandOutline> commands) {
  std::string names;
  std::string values;
  std::string flags;
  for (const CommandOutline& command : commands) {
    names += (names.empty() ? "" : " ") + command.name;
    for (const FlagOutline& flag : command.flags) {
      if (flag.type.empty()) continue;
      const std::string keys = flag.letter.empty() ? fmt::format("{}:{}", command.name, flag.name)
                                                   : fmt::format("{0}:{1} | {0}:{2}", command.name,
                                                                 flag.name, flag.letter);
      // Without words bash completes files, which is right for paths and harmless for numbers.
      fmt::format_to(std::back_inserter(values), "    {}) words='{}' ;;\n", keys,
                     fmt::join(flag.choices, " "));
    }
    fmt::format_to(std::back_inserter(flags), "    {}) flags='{}' first='{}' ;;\n", command.name,
                   fmt::join(flag_names(command), " "), fmt::join(first_words(command), " "));
  }
  return fmt::format(R"(# bash completion of shardwright; made by 'shardwright completion bash'
_shardwright() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD-1]}}
  local command=${{COMP_WORDS[1]}} words='' flags='' first=''
  COMPREPLY=()
  if ((COMP_CWORD == 1)); then
    mapfile -t COMPREPLY < <(compgen -W '{0} --help --version' -- "$current")
    return
  fi
  case $command:$previous in
{1}    *) words=- ;;
  esac
  if [[ $words != - ]]; then
    [[ -z $words ]] || mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
    return
  fi
  case $command in
{2}  esac
  if [[ $current == -* ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$flags" -- "$current")
  elif ((COMP_CWORD == 2)) && [[ -n $first ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$first" -- "$current")
  fi
}}
complete -o bashdefault -o default -F _shardwright shardwright
)",
                     names, values, flags);
}

std::string zsh_flag(const FlagOutline& flag) {
  const std::string text = with_escapes(flag.text, "[]\\:");
  std::string value;
  if (!flag.type.empty()) {
    value = ":" + with_escapes(flag.type, "[]\\:") + ":";
    if (!flag.choices.empty()) value += fmt::format("({})", fmt::join(flag.choices, " "));
    if (is_path(flag)) value += "_files";
  }
  std::string lines =
      "        " + shell_quoted(fmt::format("*{}[{}]{}", flag.name, text, value)) + " \\\n";
  if (flag.letter.empty()) return lines;
  return lines + "        " + shell_quoted(fmt::format("*{}[{}]{}", flag.letter, text, value)) +
         " \\\n";
}

std::string zsh_script(std::span<const CommandOutline> commands) {
  std::string names;
  std::string cases;
  for (const CommandOutline& command : commands) {
    names +=
        "      " +
        shell_quoted(fmt::format("{}:{}", command.name, with_escapes(command.summary, ":\\"))) +
        "\n";
    cases += fmt::format("    {})\n      _arguments -s -S \\\n", command.name);
    for (const FlagOutline& flag : command.flags) cases += zsh_flag(flag);
    const auto words = first_words(command);
    if (!words.empty()) {
      cases +=
          "        " + shell_quoted(fmt::format("1:word:({})", fmt::join(words, " "))) + " \\\n";
    }
    cases += "        '*:path:_files'\n      ;;\n";
  }
  return fmt::format(R"(#compdef shardwright
# zsh completion of shardwright; made by 'shardwright completion zsh'
_shardwright() {{
  local curcontext=$curcontext state line
  local -a commands
  _arguments -C \
    '(-)'{{-h,--help}}'[what it does]' \
    '(-)'{{-V,--version}}'[its version]' \
    '1:command:->command' \
    '*::argument:->argument'
  if [[ $state == command ]]; then
    commands=(
{}    )
    _describe command commands
    return
  fi
  case $words[1] in
{}  esac
}}
if [[ $funcstack[1] == _shardwright ]]; then
  _shardwright "$@"
else
  compdef _shardwright shardwright
fi
)",
                     names, cases);
}

std::string fish_quoted(std::string_view text) { return "'" + with_escapes(text, "'\\") + "'"; }

std::string fish_script(std::span<const CommandOutline> commands) {
  std::string text =
      "# fish completion of shardwright; made by 'shardwright completion fish'\n"
      "complete -c shardwright -n __fish_use_subcommand -s h -l help -d 'what it does'\n"
      "complete -c shardwright -n __fish_use_subcommand -s V -l version -d 'its version'\n";
  for (const CommandOutline& command : commands) {
    fmt::format_to(std::back_inserter(text),
                   "complete -c shardwright -f -n __fish_use_subcommand -a {} -d {}\n",
                   command.name, fish_quoted(command.summary));
    const std::string head =
        fmt::format("complete -c shardwright -n '__fish_seen_subcommand_from {}'", command.name);
    const auto words = first_words(command);
    if (!words.empty()) {
      fmt::format_to(std::back_inserter(text), "{} -a {}\n", head,
                     fish_quoted(fmt::format("{}", fmt::join(words, " "))));
    }
    for (const FlagOutline& flag : command.flags) {
      text += head + " -l " + flag.name.substr(2);
      if (!flag.letter.empty()) text += " -s " + flag.letter.substr(1);
      if (!flag.choices.empty()) {
        text += " -x -a " + fish_quoted(fmt::format("{}", fmt::join(flag.choices, " ")));
      } else if (!flag.type.empty()) {
        text += is_path(flag) ? " -r -F" : " -x";
      }
      text += " -d " + fish_quoted(flag.text) + "\n";
    }
  }
  return text;
}

}  // namespace

std::vector<std::string> shell_names() { return {"bash", "zsh", "fish"}; }

std::string completion_script(Shell shell, std::span<const CommandOutline> commands) {
  switch (shell) {
    case Shell::kBash:
      return bash_script(commands);
    case Shell::kZsh:
      return zsh_script(commands);
    case Shell::kFish:
      return fish_script(commands);
  }
  return {};
}

}  // namespace shardwright::cli

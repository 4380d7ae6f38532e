// SPDX-License-Identifier: Apache-2.0
#include "verify/option_words.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>

namespace shardwright {
namespace {

struct OptionWord {
  std::string_view flag;
  std::string_view option;
};

constexpr std::array kOptionWords = {
    OptionWord{"--to safetensors", "names=\"stored\""},
    OptionWord{"--accept-loss", "accept_loss="},
    OptionWord{"--as", "as_="},
    OptionWord{"--dtype", "dtype="},
    OptionWord{"--family", "family="},
    OptionWord{"--hf-config", "hf_config="},
    OptionWord{"--map", "map="},
    OptionWord{"--mtp drop", "mtp=\"drop\""},
    OptionWord{"--mtp", "mtp="},
    OptionWord{", or take the first with convert's --check-replicas none",
               ""},  // no option takes a guess
    OptionWord{"--replica N", "replica=N"},
    OptionWord{"--replica", "replica="},
    OptionWord{"--source-ep", "source_ep="},
    OptionWord{"--source-etp", "source_etp="},
    OptionWord{"--source-tp", "source_tp="},
};

// Another flag may begin with the same letters.
bool ends_a_word(char next) { return next != '-' && (next < 'a' || next > 'z'); }

constexpr std::array<std::string_view, 5> kTruths = {"accept_loss", "dry_run", "overwrite",
                                                     "own_names", "verbose"};
// What may stand behind a flag and is no English word there.
constexpr std::array<std::string_view, 15> kValues = {
    "none", "keep", "drop", "sample", "expand", "collapse", "hf",   "torch_dist",
    "dcp",  "mimo", "te",   "local",  "legacy", "replicas", "stock"};

bool is_lower(char c) { return c >= 'a' && c <= 'z'; }
bool is_word(char c) {
  return is_lower(c) || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

std::size_t end_of_name(std::string_view text, std::size_t at) {
  while (at < text.size() && (is_lower(text[at]) || text[at] == '-')) ++at;
  while (text[at - 1] == '-') --at;
  return at;
}

// The word behind a flag, where it is a value: `DIR`, `3`, or one of kValues.
std::string_view value_behind(std::string_view text) {
  if (text.empty() || text[0] != ' ') return {};
  std::size_t end = 1;
  while (end < text.size() && is_word(text[end])) ++end;
  const std::string_view word = text.substr(1, end - 1);
  const bool is_label = word.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ_") == word.npos;
  const bool is_number = word.find_first_not_of("0123456789") == word.npos;
  const bool is_known = std::ranges::find(kValues, word) != kValues.end();
  return !word.empty() && (is_label || is_number || is_known) ? word : std::string_view();
}

std::string argument_name(std::string_view flag) {
  std::string name(flag);
  std::ranges::replace(name, '-', '_');
  return name == "as" || name == "for" ? name + "_" : name;
}

// `see 'shardwright convert --help'`, where it stands at the beginning; nothing elsewhere.
std::string_view help_hint(std::string_view text) {
  constexpr std::string_view kBegin = "'shardwright ";
  constexpr std::string_view kEnd = " --help'";
  const std::size_t end = text.find(kEnd);
  if (!text.starts_with(kBegin) || end == text.npos) return {};
  const std::string_view command = text.substr(kBegin.size(), end - kBegin.size());
  return std::ranges::all_of(command, is_lower) ? text.substr(0, end + kEnd.size())
                                                : std::string_view();
}

}  // namespace

std::string in_words_of_arguments(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t at = std::min({text.find("--"), text.find("'shardwright "), text.size()});
    // A path may have a part that begins so.
    const bool inside =
        at > 0 && (is_word(text[at - 1]) || text[at - 1] == '-' || text[at - 1] == '/');
    out += text.substr(0, at);
    text.remove_prefix(at);
    if (text.empty()) break;
    if (text[0] == '\'') {
      const std::string_view hint = help_hint(text);
      const std::size_t quote = text.find('\'', 1);
      const std::string_view line =
          hint.empty() ? text.substr(0, std::min(quote, text.size() - 1) + 1) : hint;
      constexpr std::size_t kCommand = 13;
      constexpr std::size_t kAround = 21;
      out += hint.empty() ? std::string(line)
                          : "help(shardwright." +
                                std::string(hint.substr(kCommand, hint.size() - kAround)) + ")";
      text.remove_prefix(line.size());
      continue;
    }
    if (inside || text.size() < 3 || !is_lower(text[2])) {
      out += text.substr(0, 2);
      text.remove_prefix(2);
      continue;
    }
    const std::size_t end = end_of_name(text, 2);
    const std::string name = argument_name(text.substr(2, end - 2));
    text.remove_prefix(end);
    const std::string_view value = value_behind(text);
    out += name;
    if (!value.empty()) {
      const bool is_text = std::ranges::find(kValues, value) != kValues.end();
      out += is_text ? "=\"" + std::string(value) + "\"" : "=" + std::string(value);
      text.remove_prefix(value.size() + 1);
    } else if (std::ranges::find(kTruths, name) != kTruths.end() &&
               !out.ends_with("unknown flag " + name)) {
      out += "=True";
    }
  }
  for (std::size_t at = out.find("unknown flag "); at != out.npos; at = out.find("unknown flag ")) {
    out.replace(at, 12, "unknown argument");
  }
  return out;
}

Error in_words_of_options(Error error) {
  std::string& text = error.message;
  for (const auto& [flag, option] : kOptionWords) {
    for (std::size_t at = text.find(flag); at != std::string::npos; at = text.find(flag, at)) {
      const std::size_t end = at + flag.size();
      if (end == text.size() || ends_a_word(text[end])) {
        text.replace(at, flag.size(), option);
        at += option.size();
      } else {
        at = end;
      }
    }
  }
  return error;
}

}  // namespace shardwright

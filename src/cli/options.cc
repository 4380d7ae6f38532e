// SPDX-License-Identifier: Apache-2.0
#include "cli/options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <cmath>

#include "base/edit_distance.h"
#include "base/text.h"
#include "base/translated.h"
#include "cli/console_args.h"
#include "cli/quantity.h"

namespace shardwright::cli {
namespace {

std::string found(std::string_view text, std::string_view expected) {
  return translated("found '{}', expected {}", printable(text), expected);
}

// In lower case, `_` for `-`, without `torch.`.
std::string canonical_word(std::string_view text) {
  constexpr std::string_view kModule = "torch.";
  if (text.starts_with(kModule)) text.remove_prefix(kModule.size());
  std::string word(text);
  std::ranges::transform(word, word.begin(), [](char c) {
    if (c == '-') return '_';
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return word;
}

Check whole_number(std::int64_t largest) {
  return [largest](std::string& text) -> std::string {
    const auto number = parse_count(text, largest);
    if (!number) return found(text, translated("a whole number from 1 to {}", largest));
    // CLI11 would read 010 as octal.
    text = std::to_string(*number);
    return {};
  };
}

std::string check_rank(std::string& text) {
  const auto number = parse_rank(text);
  if (!number) return found(text, "a rank's number from 0 to 1048575");
  text = std::to_string(*number);
  return {};
}

std::string check_bytes(std::string& text) {
  const auto bytes = parse_bytes(text);
  if (!bytes) return found(text, "a size of at least 1 byte; write it like 5GB or 256MiB");
  text = std::to_string(*bytes);
  return {};
}

std::string check_tolerance(const std::string& text) {
  double value = 0.0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  const bool is_number = error == std::errc() && rest == end && std::isfinite(value);
  return is_number && value >= 0.0 ? "" : found(text, "a number such as 1e-6");
}

template <class T>
CLI::Option* add_value(CLI::App& app, const std::string& name, T& value, const std::string& type,
                       const std::string& text, const Check& check) {
  return app.add_option(name, value, text)->type_name(type)->transform(CLI::Validator(check, ""));
}

// One value per flag: otherwise the list would swallow the paths behind it.
void make_repeatable(CLI::Option& option, const std::string& type) {
  option.type_name(type)->expected(1)->allow_extra_args(false)->multi_option_policy(
      CLI::MultiOptionPolicy::TakeAll);
}

}  // namespace

std::string word_list(const std::vector<std::string_view>& words) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (i > 0) text += i + 1 == words.size() ? translated(" or ") : ", ";
    text += words[i];
  }
  return text;
}

std::string choose_word(std::string& text, const Vocabulary& vocabulary) {
  std::string word = canonical_word(text);
  if (const auto alias = vocabulary.aliases.find(word); alias != vocabulary.aliases.end()) {
    word = alias->second;
  }
  if (std::ranges::find(vocabulary.words, word) != vocabulary.words.end()) {
    text = word;
    return {};
  }
  const auto doubt = vocabulary.doubts.find(word);
  const std::string_view meant = doubt != vocabulary.doubts.end()
                                     ? std::string_view(doubt->second)
                                     : nearest_of(word, vocabulary.words);
  return found(text, word_list(vocabulary.words)) + std::string(vocabulary.more) +
         (meant.empty() ? "" : translated("; did you mean {}?", meant));
}

namespace {

auto refuse_empty(const std::string& what) {
  return [what](const std::string& text) {
    return text.empty() ? translated("must not be empty; give {}", what) : std::string();
  };
}

}  // namespace

void add_path(CLI::App& app, const std::string& name, std::string& path, const std::string& what) {
  app.add_option(name, path, what)->required()->check(refuse_empty(what));
}

void add_paths(CLI::App& app, const std::string& name, std::vector<std::string>& paths,
               const std::string& what) {
  app.add_option(name, paths, what)->required()->check(refuse_empty(what));
}

void add_optional_path(CLI::App& app, const std::string& name, std::string& path,
                       const std::string& what) {
  add_path(app, name, path, what);
  app.get_option(name)->required(false);
}

CLI::Option* add_text(CLI::App& app, const std::string& name, std::string& value,
                      const std::string& type, const std::string& text) {
  return app.add_option(name, value, text)->type_name(type);
}

void add_flag(CLI::App& app, const std::string& name, bool& value, const std::string& text) {
  app.add_flag(name, value, text);
}

void add_list(CLI::App& app, const std::string& name, std::vector<std::string>& values,
              const std::string& type, const std::string& text) {
  make_repeatable(*app.add_option(name, values, text), type);
}

void add_number(CLI::App& app, const std::string& name, std::int64_t& number,
                const std::string& text, std::int64_t largest) {
  add_value(app, name, number, "N", text, whole_number(largest));
}

CLI::Option* add_number(CLI::App& app, const std::string& name, std::optional<std::int64_t>& number,
                        const std::string& text, std::int64_t largest) {
  return add_value(app, name, number, "N", text, whole_number(largest));
}

void add_tolerance(CLI::App& app, const std::string& name, std::optional<double>& number,
                   const std::string& text) {
  add_value(app, name, number, "X", text, check_tolerance);
}

void add_size(CLI::App& app, const std::string& name, std::optional<std::uint64_t>& bytes,
              const std::string& text) {
  add_value(app, name, bytes, "SIZE", text, check_bytes);
}

CLI::Option* add_checked(CLI::App& app, const std::string& name, const std::string& type,
                         const std::string& text, Check check,
                         const std::function<void(const std::string& text)>& take) {
  return app.add_option_function<std::string>(name, take, text)
      ->type_name(type)
      ->transform(CLI::Validator(std::move(check), ""));
}

void add_checked_list(CLI::App& app, const std::string& name, const std::string& type,
                      const std::string& text,
                      const std::function<std::string(const std::vector<std::string>&)>& take) {
  const auto take_or_refuse = [name, take](const std::vector<std::string>& texts) {
    const std::string wrong = take(texts);
    if (!wrong.empty()) throw CLI::ValidationError(name, wrong);
  };
  make_repeatable(*app.add_option_function<std::vector<std::string>>(name, take_or_refuse, text),
                  type);
}

void require(CLI::Option* option) { option->required(); }

void make_needless(CLI::App& app, const std::vector<std::string>& names) {
  for (const std::string& name : names) app.get_option(name)->required(false);
}

std::string given_besides(const CLI::App& app, const std::vector<std::string_view>& allowed) {
  for (const CLI::Option* option : app.get_options()) {
    // A hidden one may come from the environment.
    if (option->count() == 0 || option->get_group().empty()) continue;
    if (option->get_group() == kConsoleGroup) continue;
    const std::string name = option->get_positional() || option->get_lnames().empty()
                                 ? option->get_name()
                                 : "--" + option->get_lnames().front();
    if (std::ranges::find(allowed, name) == allowed.end()) return name;
  }
  return {};
}

void require_with(CLI::Option* option, CLI::Option* other) { option->needs(other); }

bool is_given(const CLI::App& app, const std::string& name) {
  const CLI::Option* const option = app.get_option_no_throw(name);
  return option != nullptr && option->count() > 0;  // some conversions lack some flags
}

std::string given_word(const CLI::App& app, const std::string& name) {
  return app.get_option(name)->results().back();
}

void add_format(CLI::App& app, std::string& format, const std::string& where) {
  add_text(app, "--as", format, "FORMAT",
           "format to read, where " + where + " holds several checkpoints");
}

void add_family(CLI::App& app, std::string& family, std::vector<std::string>& map_files,
                std::string& models_dir) {
  add_text(app, "--family", family, "NAME", "model family, where it can't be detected");
  add_list(app, "--map", map_files, "FILE", "a further mapping file; repeatable");
  add_models(app, models_dir);
}

void add_models(CLI::App& app, std::string& models_dir) {
  app.add_option("--models", models_dir)->envname("SHARDWRIGHT_MODELS")->group("");
}

void add_replica(CLI::App& app, SourceOptions& source) {
  add_value(app, "--replica", source.replica, "N",
            "of tensors stored as NAME.__tp_replica_RANK, take those of tensor rank N", check_rank);
}

void add_source(CLI::App& app, SourceOptions& source) {
  add_flag(
      app, "--accept-loss", source.accept_loss,
      "take what is there of a checkpoint that lost a part, or the first of rows that should be "
      "alike, and say what is lost");
  add_number(app, "--source-ep", source.source_expert,
             "EP that an MLite checkpoint was saved with, where it can't be read off", kMostRanks);
  add_number(app, "--source-etp", source.source_expert_tensor, "its ETP", kMostRanks);
  add_number(app, "--source-tp", source.source_tensor, "its TP", kMostRanks);
}

void add_threads(CLI::App& app, int& threads) {
  constexpr std::int64_t kMostThreads = 4096;
  add_value(app, "--threads", threads, "N", "default: one per processor",
            whole_number(kMostThreads));
}

void add_shard_size(CLI::App& app, std::uint64_t& bytes) {
  add_value(app, "--max-shard-size", bytes, "SIZE", "of one safetensors file (default 5GB)",
            check_bytes);
}

void add_overwrite(CLI::App& app, bool& overwrite) {
  add_flag(app, "--overwrite", overwrite, "replace OUT once the new one is complete");
}

}  // namespace shardwright::cli

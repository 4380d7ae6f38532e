// SPDX-License-Identifier: Apache-2.0
#include "model/module_names.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "base/fail.h"
#include "base/text.h"
#include "model/mapping_file.h"

namespace shardwright {
namespace {

constexpr std::string_view kAnyWord = "*";
constexpr std::string_view kBeginning = "^";

// Of an entry without its `^`.
struct WordRun {
  explicit WordRun(const ModuleWords& entry)
      : is_beginning(entry.is_of_beginning()),
        words(std::span(entry.files).subspan(is_beginning ? 1 : 0)) {}

  [[nodiscard]] bool fits(std::span<const std::string_view> name, std::size_t at) const {
    if ((is_beginning && at != 0) || words.size() > name.size() - at) return false;
    return std::ranges::equal(words, name.subspan(at, words.size()),
                              [](const std::string& word, std::string_view own) {
                                return word == kAnyWord || word == own;
                              });
  }

  bool is_beginning;
  std::span<const std::string> words;
};

const ModuleWords* longest_fit(const std::vector<ModuleWords>& entries,
                               std::span<const std::string_view> name, std::size_t at) {
  const ModuleWords* best = nullptr;
  for (const ModuleWords& entry : entries) {
    const WordRun pattern(entry);
    if (!pattern.fits(name, at)) continue;
    if (best == nullptr || pattern.words.size() > WordRun(*best).words.size()) best = &entry;
  }
  return best;
}

}  // namespace

bool ModuleWords::is_of_beginning() const { return files[0] == kBeginning; }

Result<ModuleWords> parse_module_words(std::string_view files, std::string_view modules) {
  ModuleWords entry;
  const bool is_beginning = files.starts_with(kBeginning);
  for (const std::string_view word : split_at(is_beginning ? files.substr(1) : files, '.')) {
    entry.files.emplace_back(word);
  }
  for (const std::string_view word : split_at(modules, '.')) entry.modules.emplace_back(word);
  const auto is_bad = [](const std::string& word) {
    return word.empty() || word.find('^') != std::string::npos;
  };
  const bool fits =
      std::ranges::none_of(entry.files, is_bad) && std::ranges::none_of(entry.modules, is_bad) &&
      std::ranges::count(entry.files, kAnyWord) == std::ranges::count(entry.modules, kAnyWord);
  if (!fits) {
    return fail(Code::kMappingInvalid,
                "found '{}' and '{}', expected words with dots between them, and as many * in both",
                printable(files), printable(modules));
  }
  if (is_beginning) entry.files.insert(entry.files.begin(), std::string(kBeginning));
  return entry;
}

std::string with_module_words(const std::vector<ModuleWords>& entries, std::string_view name) {
  if (entries.empty()) return std::string(name);
  const std::vector<std::string_view> words = split_at(name, '.');
  std::vector<std::string_view> made;
  for (std::size_t at = 0; at < words.size();) {
    const ModuleWords* const entry = longest_fit(entries, words, at);
    if (entry == nullptr) {
      made.push_back(words[at++]);
      continue;
    }
    const WordRun pattern(*entry);
    std::size_t next = 0;
    for (const std::string& word : entry->modules) {
      if (word != kAnyWord) {
        made.push_back(word);
        continue;
      }
      while (pattern.words[next] != kAnyWord) ++next;
      made.push_back(words[at + next++]);
    }
    at += pattern.words.size();
  }
  return fmt::format("{}", fmt::join(made, "."));
}

std::string module_name(const Mapping& family, std::string_view whole) {
  return with_module_words(family.modules, module_name(family.parts, whole));
}

}  // namespace shardwright

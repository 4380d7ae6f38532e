// SPDX-License-Identifier: Apache-2.0
#include "format/iteration_folder.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <functional>
#include <utility>

namespace shardwright {
namespace {

const DirectoryEntry* latest_by(
    std::span<const DirectoryEntry> entries,
    const std::function<std::optional<std::int64_t>(std::string_view)>& number_of) {
  const DirectoryEntry* best = nullptr;
  std::int64_t best_number = -1;
  for (const DirectoryEntry& entry : entries) {
    const auto number = number_of(entry.name);
    // One that can't be read must not be passed over for an older one.
    const bool may_be_one = entry.is_directory || entry.problem;
    if (!may_be_one || !number || *number <= best_number) continue;
    best = &entry;
    best_number = *number;
  }
  return best;
}

}  // namespace

std::string_view tracker_word(std::string_view text) {
  // What Python's str.strip() takes for space: a NUL is none, and int() refuses it.
  constexpr std::string_view kSpace = " \t\n\v\f\r\x1c\x1d\x1e\x1f";
  const std::size_t first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

std::string iteration_folder(std::string_view word) {
  if (word == "release") return std::string(word);
  const auto number = number_after(word, "");
  return number ? fmt::format("iter_{:07}", *number) : std::string();
}

std::string word_of_iteration(std::string_view folder) {
  if (folder == "release") return std::string(folder);
  const auto number = number_after(folder, "iter_");
  return number ? std::to_string(*number) : std::string();
}

std::optional<std::int64_t> number_after(std::string_view name, std::string_view prefix) {
  if (!name.starts_with(prefix)) return std::nullopt;
  name.remove_prefix(prefix.size());
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  if (error != std::errc() || end != name.data() + name.size() || number < 0) return std::nullopt;
  return number;
}

std::optional<std::int64_t> step_of_epoch(std::string_view name) {
  // NeMo Automodel's, ColossalAI's and Composer's.
  constexpr std::array<std::pair<std::string_view, std::string_view>, 3> kWords = {
      {{"epoch_", "_step_"}, {"epoch-", "_step-"}, {"ep", "-ba"}}};
  for (const auto& [epoch, step] : kWords) {
    const std::size_t middle = name.find(step);
    if (middle == std::string_view::npos) continue;
    if (!number_after(name.substr(0, middle), epoch)) continue;
    return number_after(name.substr(middle), step);
  }
  return std::nullopt;
}

bool is_iteration_folder(std::string_view name) {
  return name == "release" || number_after(name, "iter_") || number_after(name, "step_");
}

const DirectoryEntry* latest_folder(std::span<const DirectoryEntry> entries,
                                    std::string_view prefix) {
  return latest_by(entries, [&](std::string_view name) { return number_after(name, prefix); });
}

const DirectoryEntry* latest_step_of_epochs(std::span<const DirectoryEntry> entries) {
  return latest_by(entries, step_of_epoch);
}

}  // namespace shardwright

// SPDX-License-Identifier: Apache-2.0
#include "cli/name_pattern.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>

namespace shardwright::cli {
namespace {

// More would not be a number of layers or experts.
constexpr std::size_t kMostDigits = 9;

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// A name taken apart: texts[0], numbers[0], texts[1], ...
struct Parts {
  std::vector<std::string> texts;
  std::vector<std::int64_t> numbers;
};

bool counts(std::string_view name, std::size_t begin, std::size_t end) {
  const std::string_view digits = name.substr(begin, end - begin);
  if (digits.size() > kMostDigits || (digits.size() > 1 && digits[0] == '0')) return false;
  const bool after_dot = begin == 0 || name[begin - 1] == '.';
  return end == name.size() || (after_dot && name[end] == '.');
}

Parts take_apart(std::string_view name) {
  Parts parts;
  std::string text;
  for (std::size_t at = 0; at < name.size();) {
    std::size_t end = at;
    while (end < name.size() && is_digit(name[end])) ++end;
    if (end > at && counts(name, at, end)) {
      parts.texts.push_back(std::move(text));
      text.clear();
      parts.numbers.push_back(std::stoll(std::string(name.substr(at, end - at))));
    } else {
      end = std::max(end, at + 1);
      text += name.substr(at, end - at);
    }
    at = end;
  }
  parts.texts.push_back(std::move(text));
  return parts;
}

std::string range_text(const std::set<std::int64_t>& values) {
  if (values.size() == 1) return std::to_string(*values.begin());
  const bool is_run =
      *values.rbegin() - *values.begin() + 1 == static_cast<std::int64_t>(values.size());
  if (is_run && values.size() > 2) {
    return fmt::format("{{{}..{}}}", *values.begin(), *values.rbegin());
  }
  return fmt::format("{{{}}}", fmt::join(values, ","));
}

// Names of one shape.
struct Family {
  std::vector<std::string> names;
  std::vector<std::string> texts;
  std::vector<std::set<std::int64_t>> numbers;
};

std::vector<std::string> patterns_of(const Family& family) {
  std::uint64_t combinations = 1;
  for (const auto& values : family.numbers) {
    combinations *= values.size();
    if (combinations > family.names.size()) return family.names;
  }
  std::string pattern = family.texts[0];
  for (std::size_t i = 0; i < family.numbers.size(); ++i) {
    pattern += range_text(family.numbers[i]) + family.texts[i + 1];
  }
  return {pattern};
}

}  // namespace

std::string name_shape(std::string_view name) {
  return fmt::format("{}", fmt::join(take_apart(name).texts, "#"));
}

std::vector<std::string> name_patterns(const std::vector<std::string>& names) {
  std::vector<Family> families;
  std::map<std::vector<std::string>, std::size_t> by_texts;
  std::set<std::string_view> seen;
  for (const std::string& name : names) {
    if (!seen.insert(name).second) continue;
    Parts parts = take_apart(name);
    const auto [place, is_new] = by_texts.emplace(parts.texts, families.size());
    if (is_new) {
      families.push_back(
          {{}, parts.texts, std::vector<std::set<std::int64_t>>(parts.numbers.size())});
    }
    Family& family = families[place->second];
    family.names.push_back(name);
    for (std::size_t i = 0; i < parts.numbers.size(); ++i) {
      family.numbers[i].insert(parts.numbers[i]);
    }
  }
  std::vector<std::string> patterns;
  for (const Family& family : families) {
    for (std::string& pattern : patterns_of(family)) patterns.push_back(std::move(pattern));
  }
  return patterns;
}

std::vector<RenamePattern> rename_patterns(const std::vector<const RenamedTensor*>& renames) {
  // Shapes of the sources, then of the target.
  std::map<std::vector<std::string>, std::size_t> by_shapes;
  std::vector<std::vector<const RenamedTensor*>> kinds;
  for (const RenamedTensor* rename : renames) {
    std::set<std::string> shapes;
    for (const std::string& name : rename->source) shapes.insert(name_shape(name));
    std::vector<std::string> key(shapes.begin(), shapes.end());
    key.push_back(name_shape(rename->target));
    const auto [place, is_new] = by_shapes.emplace(std::move(key), kinds.size());
    if (is_new) kinds.emplace_back();
    kinds[place->second].push_back(rename);
  }
  std::vector<RenamePattern> patterns;
  for (const std::vector<const RenamedTensor*>& kind : kinds) {
    std::vector<std::string> sources;
    std::vector<std::string> targets;
    for (const RenamedTensor* rename : kind) {
      sources.insert(sources.end(), rename->source.begin(), rename->source.end());
      targets.push_back(rename->target);
    }
    patterns.push_back({name_patterns(sources), name_patterns(targets)});
  }
  return patterns;
}

}  // namespace shardwright::cli

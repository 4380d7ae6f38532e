// SPDX-License-Identifier: Apache-2.0
#include "cli/name_pattern.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <set>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>

namespace shardwright::cli {
namespace {

// More would not be a number of layers or experts.
constexpr std::size_t kMostDigits = 9;

bool is_digit(char c) { return c >= '0' && c <= '9'; }

bool counts(std::string_view name, std::size_t begin, std::size_t end) {
  const std::string_view digits = name.substr(begin, end - begin);
  if (digits.size() > kMostDigits || (digits.size() > 1 && digits[0] == '0')) return false;
  const bool after_dot = begin == 0 || name[begin - 1] == '.';
  return end == name.size() || (after_dot && name[end] == '.');
}

// Calls `on_number(std::string_view)` and `on_text(std::string_view)` for what the name consists
// of, from its beginning on.
template <class Number, class Text>
void take_apart(std::string_view name, const Number& on_number, const Text& on_text) {
  for (std::size_t at = 0; at < name.size();) {
    std::size_t end = at;
    while (end < name.size() && is_digit(name[end])) ++end;
    if (end > at && counts(name, at, end)) {
      on_number(name.substr(at, end - at));
    } else {
      end = std::max(end, at + 1);
      on_text(name.substr(at, end - at));
    }
    at = end;
  }
}

struct Apart {
  // The name with 0 for each number that counts: 0 counts there too, so a shape stands for the
  // names that differ from it in those numbers and for no others.
  std::string shape;
  std::vector<std::int64_t> numbers;
};

Apart apart(std::string_view name) {
  Apart result;
  result.shape.reserve(name.size());
  take_apart(
      name,
      [&](std::string_view digits) {
        std::int64_t number = 0;
        for (const char digit : digits) number = number * 10 + (digit - '0');
        result.numbers.push_back(number);
        result.shape += '0';
      },
      [&](std::string_view text) { result.shape += text; });
  return result;
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
  std::string shape;
  std::vector<const std::string*> names;
  std::vector<std::set<std::int64_t>> numbers;
};

std::string pattern_of(const Family& family) {
  std::string pattern;
  auto numbers = family.numbers.begin();
  take_apart(
      family.shape, [&](std::string_view) { pattern += range_text(*numbers++); },
      [&](std::string_view text) { pattern += text; });
  return pattern;
}

// Whether there is a name for each combination of the numbers.
bool is_complete(const Family& family) {
  std::uint64_t combinations = 1;
  for (const auto& values : family.numbers) {
    combinations *= values.size();
    if (combinations > family.names.size()) return false;
  }
  return true;
}

// Names in the order in which they are added; those that were there already are left out.
class Families {
 public:
  void add(const std::string& name, Apart parts) {
    if (!seen_.insert(name).second) return;
    const auto [place, is_new] = by_shape_.try_emplace(parts.shape, families_.size());
    if (is_new) {
      families_.push_back({std::move(parts.shape), {}, {}});
      families_.back().numbers.resize(parts.numbers.size());
    }
    Family& family = families_[place->second];
    family.names.push_back(&name);
    for (std::size_t i = 0; i < parts.numbers.size(); ++i) {
      family.numbers[i].insert(parts.numbers[i]);
    }
  }

  [[nodiscard]] std::vector<std::string> patterns() const {
    std::vector<std::string> patterns;
    for (const Family& family : families_) {
      if (is_complete(family)) {
        patterns.push_back(pattern_of(family));
      } else {
        for (const std::string* name : family.names) patterns.push_back(*name);
      }
    }
    return patterns;
  }

 private:
  std::vector<Family> families_;
  std::unordered_map<std::string, std::size_t> by_shape_;
  std::unordered_set<std::string_view> seen_;
};

// The shapes of a rename's sources, each once, and of its target.
std::string kind_of(const std::vector<Apart>& sources, const Apart& target) {
  std::set<std::string_view> shapes;
  for (const Apart& source : sources) shapes.insert(source.shape);
  return fmt::format("{}\n{}", fmt::join(shapes, "\n"), target.shape);
}

}  // namespace

std::vector<std::string> name_patterns(const std::vector<std::string>& names) {
  Families families;
  for (const std::string& name : names) families.add(name, apart(name));
  return families.patterns();
}

std::vector<RenamePattern> rename_patterns(const std::vector<const RenamedTensor*>& renames) {
  struct Kind {
    Families sources;
    Families targets;
  };
  std::vector<Kind> kinds;
  std::unordered_map<std::string, std::size_t> places;
  for (const RenamedTensor* rename : renames) {
    std::vector<Apart> sources;
    for (const std::string& name : rename->source) sources.push_back(apart(name));
    Apart target = apart(rename->target);
    const auto [place, is_new] = places.try_emplace(kind_of(sources, target), kinds.size());
    if (is_new) kinds.emplace_back();
    Kind& kind = kinds[place->second];
    for (std::size_t i = 0; i < sources.size(); ++i) {
      kind.sources.add(rename->source[i], std::move(sources[i]));
    }
    kind.targets.add(rename->target, std::move(target));
  }
  std::vector<RenamePattern> patterns;
  for (const Kind& kind : kinds) {
    patterns.push_back({kind.sources.patterns(), kind.targets.patterns()});
  }
  return patterns;
}

}  // namespace shardwright::cli

// SPDX-License-Identifier: Apache-2.0
#include "base/glob.h"

#include <fmt/ranges.h>
#include <fnmatch.h>

#include <algorithm>

#include "base/fail.h"
#include "base/text.h"

namespace shardwright {
namespace {

constexpr std::size_t kMostNames = 2000;
constexpr std::size_t kMostLength = 256;
constexpr std::size_t kShown = 3;

// The longest piece of a pattern that stands for itself.
std::string_view longest_literal(std::string_view pattern) {
  std::string_view longest;
  while (!pattern.empty()) {
    const std::size_t end = std::min(pattern.find_first_of("*?[]"), pattern.size());
    if (end > longest.size()) longest = pattern.substr(0, end);
    pattern.remove_prefix(std::min(end + 1, pattern.size()));
  }
  return longest;
}

// Characters of the longest text that is part of both.
std::size_t longest_common(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::size_t best = 0;
  for (const char c : a) {
    std::size_t diagonal = 0;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t above = row[j + 1];
      row[j + 1] = c == b[j] ? diagonal + 1 : 0;
      diagonal = above;
      best = std::max(best, row[j + 1]);
    }
  }
  return best;
}

}  // namespace

bool matches_glob(std::string_view pattern, std::string_view name) {
  return fnmatch(std::string(pattern).c_str(), std::string(name).c_str(), 0) == 0;
}

std::vector<std::string_view> near_glob(std::string_view pattern,
                                        std::span<const std::string_view> names) {
  const std::string_view literal = longest_literal(pattern.substr(0, kMostLength));
  struct Near {
    std::size_t shared;
    std::string_view name;
  };
  std::vector<Near> near;
  for (const std::string_view name : names.first(std::min(names.size(), kMostNames))) {
    const std::size_t shared = longest_common(literal, name.substr(0, kMostLength));
    // Less than half of it in common is chance.
    if (shared >= kShown && 2 * shared >= literal.size()) near.push_back({shared, name});
  }
  std::ranges::stable_sort(near, std::ranges::greater(), &Near::shared);
  std::vector<std::string_view> best;
  for (const Near& one : near) {
    if (best.size() == kShown || one.shared < near.front().shared) break;
    best.push_back(one.name);
  }
  return best;
}

Status check_globs(std::string_view flag, std::span<const std::string> patterns,
                   std::span<const std::string_view> names) {
  for (const std::string& pattern : patterns) {
    const bool matches = std::ranges::any_of(
        names, [&](std::string_view name) { return matches_glob(pattern, name); });
    if (matches) continue;
    const std::vector<std::string_view> near = near_glob(pattern, names);
    const auto some = names.first(std::min(names.size(), kShown));
    return fail(Code::kUsage, "{} '{}': matches no tensor{}", flag, printable(pattern),
                !near.empty()   ? translated("; near it are {}", fmt::join(near, ", "))
                : !some.empty() ? translated("; there are names such as {}", fmt::join(some, ", "))
                                : "");
  }
  return {};
}

}  // namespace shardwright

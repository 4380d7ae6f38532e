// SPDX-License-Identifier: Apache-2.0
#include "base/edit_distance.h"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

namespace shardwright {
namespace {

constexpr std::size_t kMaxLength = 256;
constexpr std::size_t kMaxCandidates = 1000;

template <typename Text>
std::string_view nearest_among(std::string_view name, std::span<const Text> candidates) {
  if (name.empty() || name.size() > kMaxLength) return {};
  std::string_view nearest;
  std::size_t best = std::max<std::size_t>(1, name.size() / 3) + 1;
  for (const std::string_view candidate :
       candidates.first(std::min(candidates.size(), kMaxCandidates))) {
    if (candidate.size() > kMaxLength) continue;
    const std::size_t distance = edit_distance(name, candidate);
    if (distance >= best || distance >= candidate.size()) continue;
    best = distance;
    nearest = candidate;
  }
  return nearest;
}

}  // namespace

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before_last(b.size() + 1);
  std::vector<std::size_t> last(b.size() + 1);
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(last.begin(), last.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({replaced, last[j] + 1, row[j - 1] + 1});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before_last[j - 2] + 1);
      }
    }
    std::swap(before_last, last);
    std::swap(last, row);
  }
  return last.back();
}

std::string_view nearest_of(std::string_view name, std::span<const std::string_view> candidates) {
  return nearest_among(name, candidates);
}

std::string_view nearest_of(std::string_view name, std::span<const std::string> candidates) {
  return nearest_among(name, candidates);
}

}  // namespace shardwright

// SPDX-License-Identifier: Apache-2.0
#include "model/nearest.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <vector>

namespace shardwright {
namespace {

constexpr std::size_t kMaxCandidates = 1000;

/// Levenshtein distance by rows.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, diagonal + 1, row[j] + 1});
    }
  }
  return row.back();
}

}  // namespace

std::string nearest_name(std::string_view name, std::span<const std::string> candidates) {
  constexpr std::size_t kMaxLength = 256;
  if (name.size() > kMaxLength) return {};
  std::size_t best = name.size() / 3 + 1;
  std::string nearest;
  for (const std::string& candidate :
       candidates.first(std::min(candidates.size(), kMaxCandidates))) {
    if (candidate.size() > kMaxLength) continue;
    const std::size_t distance = edit_distance(name, candidate);
    if (distance >= best) continue;
    best = distance;
    nearest = candidate;
  }
  return nearest;
}

}  // namespace shardwright

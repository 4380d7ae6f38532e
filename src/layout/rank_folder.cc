// SPDX-License-Identifier: Apache-2.0
#include "layout/rank_folder.h"

#include <fmt/core.h>

#include <charconv>

namespace shardwright {
namespace {

constexpr std::string_view kPrefix = "mp_rank_";
constexpr std::size_t kMostNumbers = 4;  // tp, pp, dp, ep of one family of tools

struct Coordinates {
  bool pipeline;
  bool expert;
};

Coordinates coordinates_of(const ParallelConfig& config, RankNaming naming) {
  const bool expert = config.expert > 1;
  return {config.pipeline > 1 || (expert && naming == RankNaming::kTpPpEp), expert};
}

}  // namespace

std::string rank_folder_name(const LegacyRank& rank, const ParallelConfig& config,
                             RankNaming naming) {
  const Coordinates has = coordinates_of(config, naming);
  std::string name = fmt::format("{}{:02}", kPrefix, rank.tensor);
  if (has.pipeline) name += fmt::format("_{:03}", rank.pipeline);
  if (has.expert) name += fmt::format("_{:03}", rank.expert);
  return name;
}

std::string rank_folder_pattern(const ParallelConfig& config, RankNaming naming) {
  const Coordinates has = coordinates_of(config, naming);
  std::string pattern(kPrefix);
  pattern += "{tp:02d}";
  if (has.pipeline) pattern += "_{pp:03d}";
  if (has.expert) pattern += "_{ep:03d}";
  return pattern;
}

std::optional<std::vector<std::int64_t>> parse_rank_folder(std::string_view name) {
  if (!name.starts_with(kPrefix)) return std::nullopt;
  name.remove_prefix(kPrefix.size());
  std::vector<std::int64_t> numbers;
  while (true) {
    // from_chars would take a sign.
    if (name.empty() || name.front() < '0' || name.front() > '9') return std::nullopt;
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
    if (error != std::errc() || numbers.size() == kMostNumbers) return std::nullopt;
    numbers.push_back(number);
    name.remove_prefix(static_cast<std::size_t>(end - name.data()));
    if (name.empty()) return numbers;
    if (name.front() != '_') return std::nullopt;
    name.remove_prefix(1);
  }
}

}  // namespace shardwright

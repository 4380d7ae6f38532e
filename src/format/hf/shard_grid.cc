// SPDX-License-Identifier: Apache-2.0
#include "format/hf/shard_grid.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "base/fail.h"
#include "base/text.h"

namespace shardwright {
namespace {

// More than any save has: names that count further are not filled up.
constexpr std::int64_t kMostCells = 100'000;

struct ShardName {
  std::int64_t rank;
  std::int64_t file;
  std::int64_t files;
};

bool take_text(std::string_view& rest, std::string_view text) {
  if (!rest.starts_with(text)) return false;
  rest.remove_prefix(text.size());
  return true;
}

std::optional<ShardName> parse_shard(std::string_view name) {
  if (!take_text(name, "shard-")) return std::nullopt;
  const auto rank = take_number(name);
  if (!rank || !take_text(name, "-model-")) return std::nullopt;
  const auto file = take_number(name);
  if (!file || !take_text(name, "-of-")) return std::nullopt;
  const auto files = take_number(name);
  if (!files || name != ".safetensors" || *rank < 1 || *file < 1 || *files < 1) return std::nullopt;
  return ShardName{*rank, *file, *files};
}

}  // namespace

std::vector<std::string> shard_grid_notes(std::span<const std::string> files) {
  std::set<std::pair<std::int64_t, std::int64_t>> cells;
  std::int64_t ranks = 0;
  std::int64_t count = 0;
  for (const std::string& name : files) {
    const auto shard = parse_shard(name);
    if (!shard) continue;
    cells.emplace(shard->rank, shard->file);
    ranks = std::max(ranks, shard->rank);
    count = std::max(count, shard->files);
  }
  if (cells.empty()) return {};
  std::vector<std::string> notes;
  std::vector<std::string> absent;
  const bool is_countable = count <= kMostCells && ranks <= kMostCells / count;
  for (std::int64_t rank = 1; is_countable && rank <= ranks; ++rank) {
    for (std::int64_t file = 1; file <= count; ++file) {
      if (cells.contains({rank, file})) continue;
      absent.push_back(
          fmt::format("shard-{:05}-model-{:05}-of-{:05}.safetensors", rank, file, count));
    }
  }
  if (!absent.empty()) {
    notes.push_back(translated(
        "not there: {}; a rank writes no file for tensors that it has no part of, and if "
        "it had one, parts of tensors are lost",
        name_list(absent)));
  }
  notes.push_back(translated(
      "{} files hold parts of tensors, and nothing in them says where the tensors end: a "
      "loss of the last parts is noticed only where a config.json tells the shapes",
      cells.size()));
  return notes;
}

}  // namespace shardwright

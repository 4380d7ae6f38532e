// SPDX-License-Identifier: Apache-2.0
#include "layout/rank_order.h"

#include <algorithm>
#include <charconv>
#include <utility>
#include <vector>

namespace shardwright {

std::optional<std::int64_t> rank_of_file(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  std::string_view name = slash == path.npos ? path : path.substr(slash + 1);
  if (!name.starts_with("__")) return std::nullopt;
  name.remove_prefix(2);
  std::int64_t rank = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), rank);
  if (error != std::errc() || end == name.data() + name.size() || *end != '_') return std::nullopt;
  return rank < 0 ? std::nullopt : std::optional(rank);
}

std::optional<FsdpOrder> order_of_ranks(const Catalog& catalog, const StoredTensor& tensor,
                                        const MergedRanks& ranks) {
  std::vector<std::pair<std::int64_t, std::int64_t>> writers;  // first row, rank
  for (std::size_t i = 0; i < tensor.chunks.size(); ++i) {
    const Box box = tensor.chunks.box(i);
    if (box.is_empty()) continue;
    const auto rank = rank_of_file(catalog.files[tensor.chunks.file(i)]);
    if (!rank) return std::nullopt;
    writers.emplace_back(box.origin[0], *rank);
  }
  std::ranges::sort(writers);
  const auto fsdp = [&](const auto& writer) { return writer.second / ranks.others; };
  const auto other = [&](const auto& writer) {
    return writer.second % ranks.others / ranks.columns;
  };
  if (std::ranges::is_sorted(writers, {}, fsdp)) return FsdpOrder::kOutside;
  if (std::ranges::is_sorted(writers, {}, other)) return FsdpOrder::kInside;
  return std::nullopt;
}

}  // namespace shardwright

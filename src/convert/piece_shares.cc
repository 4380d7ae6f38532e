// SPDX-License-Identifier: Apache-2.0
#include "convert/piece_shares.h"

#include <algorithm>
#include <utility>

namespace shardwright {

PieceShares::PieceShares(std::vector<std::uint32_t> todo, std::span<const std::uint64_t> bytes,
                         int ranks)
    : todo_(std::move(todo)), before_{0}, stretches_(static_cast<std::size_t>(ranks)) {
  // A piece without bytes is work too.
  for (const std::uint64_t weight : bytes) before_.push_back(before_.back() + weight + 1);
  const std::uint64_t share = before_.back() / stretches_.size() + 1;
  std::size_t begin = 0;
  for (std::size_t rank = 0; rank < stretches_.size(); ++rank) {
    const std::size_t end = std::max(begin, cut(0, (rank + 1) * share));
    stretches_[rank] = {begin, end};
    begin = end;
  }
  stretches_.back().end = todo_.size();
}

std::size_t PieceShares::cut(std::size_t begin, std::uint64_t weight) const {
  const auto first = before_.begin() + static_cast<std::ptrdiff_t>(begin);
  const auto found = std::upper_bound(first, before_.end(), before_[begin] + weight);
  return static_cast<std::size_t>(found - before_.begin()) - 1;
}

std::optional<std::uint32_t> PieceShares::take(int rank) {
  Stretch& own = stretches_[static_cast<std::size_t>(rank)];
  if (own.begin == own.end) {
    Stretch& largest = *std::ranges::max_element(
        stretches_, {}, [&](const Stretch& stretch) { return weight(stretch); });
    if (largest.begin == largest.end) return std::nullopt;
    const std::size_t middle = std::min(cut(largest.begin, weight(largest) / 2), largest.end - 1);
    own = {middle, std::exchange(largest.end, middle)};
  }
  return todo_[own.begin++];
}

std::optional<std::uint32_t> PieceShares::take_own(int rank) {
  Stretch& own = stretches_[static_cast<std::size_t>(rank)];
  if (own.begin == own.end) return std::nullopt;
  return todo_[own.begin++];
}

PieceShares shares_of_pieces(const PieceList& pieces, std::vector<std::uint32_t> todo, int ranks) {
  std::vector<std::uint64_t> bytes;
  bytes.reserve(todo.size());
  for (const std::uint32_t piece : todo) bytes.push_back(pieces.bytes(piece));
  return {std::move(todo), bytes, ranks};
}

}  // namespace shardwright

// SPDX-License-Identifier: Apache-2.0
#include "convert/piece_shares.h"

#include <algorithm>
#include <utility>

namespace shardwright {
namespace {

// A stretch may be a quarter longer or shorter for the sake of a file's end: who is done first
// takes from who is not.
constexpr std::uint64_t kSlackPart = 4;

}  // namespace

PieceShares::PieceShares(std::vector<std::uint32_t> todo, std::span<const std::uint64_t> bytes,
                         int ranks, std::span<const std::uint32_t> files)
    : todo_(std::move(todo)), before_{0}, stretches_(static_cast<std::size_t>(ranks)) {
  // A piece without bytes is work too.
  for (const std::uint64_t weight : bytes) before_.push_back(before_.back() + weight + 1);
  for (std::size_t i = 1; i < files.size(); ++i) {
    if (files[i] != files[i - 1]) file_begins_.push_back(i);
  }
  const std::uint64_t share = before_.back() / stretches_.size() + 1;
  std::size_t begin = 0;
  for (std::size_t rank = 0; rank < stretches_.size(); ++rank) {
    const std::size_t end =
        std::max(begin, cut_near(0, (rank + 1) * share, share / kSlackPart, {begin, todo_.size()}));
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

std::size_t PieceShares::cut_near(std::size_t begin, std::uint64_t weight, std::uint64_t slack,
                                  const Stretch& bounds) const {
  const std::size_t exact = cut(begin, weight);
  const std::uint64_t wanted = before_[begin] + weight;
  const auto distance = [&](std::size_t place) {
    return before_[place] > wanted ? before_[place] - wanted : wanted - before_[place];
  };
  std::size_t best = exact;
  std::uint64_t least = slack;
  const auto behind = std::ranges::upper_bound(file_begins_, exact);
  for (auto place = behind == file_begins_.begin() ? behind : behind - 1;
       place != file_begins_.end() && place <= behind; ++place) {
    const bool is_within = *place > bounds.begin && *place < bounds.end;
    if (!is_within || distance(*place) > least) continue;
    best = *place;
    least = distance(*place);
  }
  return best;
}

std::optional<std::uint32_t> PieceShares::take(int rank) {
  Stretch& own = stretches_[static_cast<std::size_t>(rank)];
  if (own.begin == own.end) {
    Stretch& largest = *std::ranges::max_element(
        stretches_, {}, [&](const Stretch& stretch) { return weight(stretch); });
    if (largest.begin == largest.end) return std::nullopt;
    const std::uint64_t half = weight(largest) / 2;
    // One that is longer than all behind it stays where it is.
    std::size_t middle = cut_near(largest.begin, half, half / kSlackPart, largest);
    middle = std::min(std::max(middle, largest.begin + 1), largest.end - 1);
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
  std::vector<std::uint32_t> files;
  bytes.reserve(todo.size());
  files.reserve(todo.size());
  for (const std::uint32_t piece : todo) {
    bytes.push_back(pieces.bytes(piece));
    files.push_back(pieces.source_file(piece));
  }
  return {std::move(todo), bytes, ranks, files};
}

}  // namespace shardwright

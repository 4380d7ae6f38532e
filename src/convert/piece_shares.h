// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "exec/piece_list.h"

namespace shardwright {

/// Which rank does which pieces, or jobs: each begins with a stretch of neighbours that is its
/// share of the bytes, so that few ranks read the same source file. Who has done all of that gets
/// the second half of the stretch that has most left, so that a slow node does not hold the others
/// up. Where a source file ends near to where a stretch would, the stretch ends there. Pure.
class PieceShares {
 public:
  /// `todo`: pieces in ascending order; `bytes` of each of them, and the source file that it
  /// begins in (`files` may be empty: nobody knows).
  PieceShares(std::vector<std::uint32_t> todo, std::span<const std::uint64_t> bytes, int ranks,
              std::span<const std::uint32_t> files = {});

  /// The next piece for a rank; nothing when none is left for anybody.
  [[nodiscard]] std::optional<std::uint32_t> take(int rank);
  /// The next of its own stretch; nothing when that is done.
  [[nodiscard]] std::optional<std::uint32_t> take_own(int rank);

 private:
  struct Stretch {
    std::size_t begin = 0;  // in todo_
    std::size_t end = 0;
  };

  [[nodiscard]] std::uint64_t weight(const Stretch& stretch) const {
    return before_[stretch.end] - before_[stretch.begin];
  }
  /// Where the first `weight` of what lies behind `begin` ends.
  [[nodiscard]] std::size_t cut(std::size_t begin, std::uint64_t weight) const;
  /// The same, or where a file ends that is at most `slack` away from that and within `bounds`.
  [[nodiscard]] std::size_t cut_near(std::size_t begin, std::uint64_t weight, std::uint64_t slack,
                                     const Stretch& bounds) const;

  std::vector<std::uint32_t> todo_;
  std::vector<std::size_t> file_begins_;  // in todo_, but for the first file's
  std::vector<std::uint64_t> before_;     // what the pieces in front of each weigh
  std::vector<Stretch> stretches_;        // of each rank
};

/// Those of a plan's pieces. `todo`: in ascending order.
[[nodiscard]] PieceShares shares_of_pieces(const PieceList& pieces, std::vector<std::uint32_t> todo,
                                           int ranks);

}  // namespace shardwright

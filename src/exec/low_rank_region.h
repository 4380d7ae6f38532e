// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "plan/lower.h"

namespace shardwright {

/// A block of values to which a product was added, and the factors. Borrows all of them.
struct UpdatedBlock {
  const std::vector<float>& left;   ///< [rows, rank]
  const std::vector<float>& right;  ///< [rank, columns]
  const std::vector<float>& values;
};

/// A piece to which a product is added, seen as a matrix: of its axes at most two have more than
/// one coordinate.
class UpdatedMatrix {
 public:
  /// What a block of values and the factors for it may take together.
  static constexpr std::int64_t kMostBytes = std::int64_t{4} << 20;

  /// Borrows the piece. REQUIRES: piece.update.
  explicit UpdatedMatrix(const SourcePiece& piece);

  [[nodiscard]] std::int64_t rows() const { return rows_; }
  [[nodiscard]] std::int64_t columns() const { return columns_; }
  /// Rows and columns of a block.
  [[nodiscard]] std::int64_t block_rows() const { return block_rows_; }
  [[nodiscard]] std::int64_t block_columns() const { return block_columns_; }

  /// The block with this corner, in the target tensor; smaller at the edges.
  [[nodiscard]] Box block(std::int64_t row, std::int64_t column) const;
  /// Rows [first, first + count) of the left factor as a piece of [count, rank], and columns of the
  /// right one as a piece of [count, rank] too. Not to be read where is_ones().
  [[nodiscard]] SourcePiece left(std::int64_t first, std::int64_t count) const;
  [[nodiscard]] SourcePiece right(std::int64_t first, std::int64_t count) const;
  /// Whether the right factor is a one.
  [[nodiscard]] bool is_ones() const { return inner_ == nullptr; }
  /// Adds to the dense values of a block, and multiplies rows. `left` is [rows, rank], `right`
  /// [rank, columns].
  void apply(const Box& block, const std::vector<float>& left, const std::vector<float>& right,
             std::vector<float>& values) const;
  /// Whether one of the values is not finite, though all of which it was made are: `stored` is what
  /// the values were.
  [[nodiscard]] bool overflows(const Box& block, const UpdatedBlock& updated,
                               const std::vector<float>& stored) const;

 private:
  // What the rows and columns of a block are multiplied with in the end.
  [[nodiscard]] float factor_of(const Box& block, std::int64_t row, std::int64_t column) const;
  [[nodiscard]] static std::int64_t size_of(const Box& block, const PieceFactor* factor);
  [[nodiscard]] std::int64_t extent(int axis) const;
  [[nodiscard]] SourcePiece rows_of(const PieceFactor& factor, std::int64_t first,
                                    std::int64_t count) const;

  const SourcePiece& piece_;
  const PieceUpdate& update_;
  const PieceFactor* outer_;  // of rows
  const PieceFactor* inner_;  // of columns; null: ones
  std::int64_t rows_ = 1;
  std::int64_t columns_ = 1;
  std::int64_t block_rows_ = 1;
  std::int64_t block_columns_ = 1;
};

}  // namespace shardwright

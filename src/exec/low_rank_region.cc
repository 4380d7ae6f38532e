// SPDX-License-Identifier: Apache-2.0
#include "exec/low_rank_region.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "tensor/low_rank.h"
#include "tensor/weighted_sum.h"

namespace shardwright {

UpdatedMatrix::UpdatedMatrix(const SourcePiece& piece)
    : piece_(piece),
      update_(*piece.update),
      outer_(&update_.out),
      inner_(update_.in ? &*update_.in : nullptr) {
  // A transposed matrix has the output's coordinate along its rows.
  if (inner_ != nullptr && inner_->axis >= 0 && inner_->axis < outer_->axis) {
    std::swap(outer_, inner_);
  }
  rows_ = extent(outer_->axis);
  columns_ = inner_ == nullptr ? 1 : extent(inner_->axis);
  // The right factor is loaded once for all rows of a piece, so it may take half.
  constexpr std::int64_t kHalf = kMostBytes / 2 / static_cast<std::int64_t>(sizeof(float));
  block_columns_ = std::clamp<std::int64_t>(kHalf / std::max<std::int64_t>(update_.rank, 2), 1,
                                            std::max<std::int64_t>(columns_, 1));
  // Values are kept as they were, too.
  block_rows_ = std::clamp<std::int64_t>(kHalf / (2 * block_columns_ + update_.rank), 1,
                                         std::max<std::int64_t>(rows_, 1));
}

std::int64_t UpdatedMatrix::extent(int axis) const { return axis < 0 ? 1 : piece_.box.shape[axis]; }

Box UpdatedMatrix::block(std::int64_t row, std::int64_t column) const {
  Box box = piece_.box;
  const auto cut = [&](const PieceFactor* factor, std::int64_t first, std::int64_t most) {
    if (factor == nullptr || factor->axis < 0) return;
    box.origin[factor->axis] += first;
    box.shape[factor->axis] = std::min(most, box.shape[factor->axis] - first);
  };
  cut(outer_, row, block_rows_);
  cut(inner_, column, block_columns_);
  return box;
}

SourcePiece UpdatedMatrix::rows_of(const PieceFactor& factor, std::int64_t first,
                                   std::int64_t count) const {
  SourcePiece piece;
  piece.box = Box::whole({count, update_.rank});
  piece.file = factor.file;
  piece.offset = factor.offset + static_cast<std::uint64_t>(first * factor.stride);
  piece.strides = {factor.stride, factor.rank_stride};
  piece.dtype = factor.dtype;
  return piece;
}

SourcePiece UpdatedMatrix::left(std::int64_t first, std::int64_t count) const {
  return rows_of(*outer_, first, count);
}

SourcePiece UpdatedMatrix::right(std::int64_t first, std::int64_t count) const {
  return rows_of(*inner_, first, count);
}

std::int64_t UpdatedMatrix::size_of(const Box& block, const PieceFactor* factor) {
  return factor == nullptr || factor->axis < 0 ? 1 : block.shape[factor->axis];
}

float UpdatedMatrix::factor_of(const Box& block, std::int64_t row, std::int64_t column) const {
  const int axis = update_.out.axis;
  const std::int64_t begin = axis < 0 ? 0 : block.origin[axis] - piece_.box.origin[axis];
  const bool by_row = outer_ == &update_.out;
  return update_.factors[(begin + (by_row ? row : column)) * update_.factor_step];
}

void UpdatedMatrix::apply(const Box& block, const std::vector<float>& left,
                          const std::vector<float>& right, std::vector<float>& values) const {
  const std::int64_t rows = size_of(block, outer_);
  const std::int64_t columns = size_of(block, inner_);
  add_low_rank({left.data(), right.data(), rows, columns, update_.rank}, update_.scale,
               values.data());
  if (update_.factors == nullptr) return;
  float* value = values.data();
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t column = 0; column < columns; ++column) {
      *value++ *= factor_of(block, row, column);
    }
  }
}

bool UpdatedMatrix::overflows(const Box& block, const UpdatedBlock& updated,
                              const std::vector<float>& stored) const {
  const std::int64_t columns = size_of(block, inner_);
  const auto are_finite = [&](std::int64_t row, std::int64_t column) {
    const auto is_finite = [](const std::vector<float>& numbers, std::int64_t at) {
      return std::isfinite(numbers[static_cast<std::size_t>(at)]);
    };
    if (update_.factors != nullptr && !std::isfinite(factor_of(block, row, column))) return false;
    for (std::int64_t k = 0; k < update_.rank; ++k) {
      if (!is_finite(updated.left, row * update_.rank + k)) return false;
      if (!is_finite(updated.right, k * columns + column)) return false;
    }
    return true;
  };
  const std::int64_t count = std::ssize(updated.values);
  for (auto i = static_cast<std::size_t>(first_not_finite(count, updated.values.data()));
       i < stored.size(); ++i) {
    if (std::isfinite(updated.values[i]) || !std::isfinite(stored[i])) continue;
    const auto at = static_cast<std::int64_t>(i);
    if (are_finite(at / columns, at % columns)) return true;
  }
  return false;
}

}  // namespace shardwright

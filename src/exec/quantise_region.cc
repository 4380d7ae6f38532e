// SPDX-License-Identifier: Apache-2.0
#include "exec/quantise_region.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <optional>

#include "base/endian.h"
#include "base/fail.h"
#include "plan/quantising.h"
#include "tensor/quantise.h"

namespace shardwright {
namespace {

std::byte* place_of(const TilePart& part, const Box& box) {
  std::byte* place = part.bytes;
  for (int axis = 0; axis < box.axes(); ++axis) {
    place += (box.origin[axis] - part.box.origin[axis]) * part.strides[axis];
  }
  return place;
}

// Some whole blocks under one index of the leading axes, with the numbers of the matrix.
class Strip {
 public:
  Strip(const Quantising& quantising, const Box& blocks, std::span<const float> values)
      : quantising_(quantising),
        blocks_(blocks),
        matrix_(matrix_of_blocks(quantising, blocks)),
        values_(values),
        rows_(quantising.row_axis()),
        columns_(quantising.column_axis()) {}

  Status find_scales() {
    const std::int64_t across = blocks_.shape[columns_];
    scales_.assign(static_cast<std::size_t>(blocks_.shape[rows_] * across), 0.0F);
    for (std::int64_t row = 0; row < matrix_.shape[rows_]; ++row) {
      float* scales = &scales_[static_cast<std::size_t>(row / quantising_.block_rows * across)];
      for (std::int64_t block = 0; block < across; ++block) {
        const std::span<const float> run = run_of(row, block);
        scales[block] = std::max(scales[block], magnitude_of(run));
      }
    }
    for (float& scale : scales_) {
      if (!std::isfinite(scale)) {
        return fail(
            Code::kValueOverflow,
            "a number is infinite or none, expected finite ones: no scale fits their block");
      }
      scale = scale_of(scale);
    }
    return {};
  }

  void write(DType dtype, const TilePart& part) const {
    Box whole = quantising_.part == Quantising::Part::kScales || is_fp4() ? blocks_ : matrix_;
    if (quantising_.part == Quantising::Part::kValues && is_fp4()) {
      whole.origin.push_back(0);
      whole.shape.push_back(quantising_.block_columns / 2);
    }
    const std::optional<Box> common = intersect(part.box, whole);
    if (!common) return;
    for (std::int64_t row = 0; row < common->shape[rows_]; ++row) {
      Box line = *common;
      line.origin[rows_] += row;
      line.shape[rows_] = 1;
      if (quantising_.part == Quantising::Part::kScales) {
        write_scales(dtype, line, part);
      } else if (is_fp4()) {
        write_pairs(line, part);
      } else {
        write_codes(line, part);
      }
    }
  }

 private:
  [[nodiscard]] bool is_fp4() const { return quantising_.scheme == Quantising::Scheme::kMxfp4; }

  // Not the greatest itself: that of numbers that are none is none.
  [[nodiscard]] static float magnitude_of(std::span<const float> run) {
    const float greatest = greatest_magnitude(run.data(), std::ssize(run));
    return std::isnan(greatest) ? HUGE_VALF : greatest;
  }

  [[nodiscard]] float scale_of(float greatest) const {
    if (!is_fp4()) return fp8_scale(greatest, quantising_.has_exponents);
    return static_cast<float>(fp4_exponent(greatest));
  }

  // Of a row of the strip what lies in a block.
  [[nodiscard]] std::span<const float> run_of(std::int64_t row, std::int64_t block) const {
    const std::int64_t width = matrix_.shape[columns_];
    const std::int64_t first = block * quantising_.block_columns;
    const std::int64_t count = std::min(quantising_.block_columns, width - first);
    return values_.subspan(static_cast<std::size_t>(row * width + first),
                           static_cast<std::size_t>(count));
  }

  [[nodiscard]] float scale_at(std::int64_t block_row, std::int64_t block) const {
    return scales_[static_cast<std::size_t>(block_row * blocks_.shape[columns_] + block)];
  }

  void write_scales(DType dtype, const Box& line, const TilePart& part) const {
    const std::int64_t row = line.origin[rows_] - blocks_.origin[rows_];
    const std::int64_t first = line.origin[columns_] - blocks_.origin[columns_];
    std::byte* place = place_of(part, line);
    for (std::int64_t i = 0; i < line.shape[columns_]; ++i, place += part.strides[columns_]) {
      const float scale = scale_at(row, first + i);
      if (dtype == DType::kF32) {
        store_le(place, std::bit_cast<std::uint32_t>(scale));
      } else {
        *place = static_cast<std::byte>(is_fp4() ? static_cast<std::uint8_t>(scale)
                                                 : exponent_of(scale));
      }
    }
  }

  void write_codes(const Box& line, const TilePart& part) const {
    const std::int64_t row = line.origin[rows_] - matrix_.origin[rows_];
    const std::int64_t begin = line.origin[columns_] - matrix_.origin[columns_];
    const std::int64_t end = begin + line.shape[columns_];
    std::byte* place = place_of(part, line);
    for (std::int64_t at = begin; at < end;) {
      const std::int64_t block = at / quantising_.block_columns;
      const std::int64_t skipped = at - block * quantising_.block_columns;
      const std::span<const float> run = run_of(row, block);
      const std::int64_t count = std::min(std::ssize(run) - skipped, end - at);
      quantise_fp8(&run[static_cast<std::size_t>(skipped)], count,
                   scale_at(row / quantising_.block_rows, block), place);
      at += count;
      place += count;  // parts are dense along their last axis
    }
  }

  void write_pairs(const Box& line, const TilePart& part) const {
    const int bytes = columns_ + 1;  // the axis of a group's bytes
    const std::int64_t row = line.origin[rows_] - blocks_.origin[rows_];
    std::byte* place = place_of(part, line);
    for (std::int64_t i = 0; i < line.shape[columns_]; ++i, place += part.strides[columns_]) {
      const std::int64_t group = line.origin[columns_] - blocks_.origin[columns_] + i;
      const std::span<const float> run = run_of(row, group);
      quantise_fp4(&run[static_cast<std::size_t>(2 * line.origin[bytes])], 2 * line.shape[bytes],
                   static_cast<std::uint8_t>(scale_at(row, group)), place);
    }
  }

  const Quantising& quantising_;
  const Box& blocks_;
  Box matrix_;
  std::span<const float> values_;
  int rows_;
  int columns_;
  std::vector<float> scales_;  // of fp4 exponents
};

// How many rows and columns of blocks are taken at once: whole rows where they fit.
struct StripSize {
  std::int64_t rows = 1;
  std::int64_t columns = 1;
};

StripSize strip_size(const Quantising& quantising, const Box& blocks) {
  constexpr std::int64_t kMost = kMostMatrixBytes / std::int64_t{sizeof(float)};
  const std::int64_t rows =
      std::min(quantising.block_rows, quantising.shape[quantising.row_axis()]);
  const std::int64_t columns =
      std::min(quantising.block_columns, quantising.shape[quantising.column_axis()]);
  const std::int64_t most_blocks = std::max<std::int64_t>(kMost / columns / rows, 1);
  StripSize size;
  size.columns = std::clamp<std::int64_t>(blocks.shape[quantising.column_axis()], 1, most_blocks);
  size.rows =
      std::clamp<std::int64_t>(most_blocks / size.columns, 1,
                               std::max<std::int64_t>(blocks.shape[quantising.row_axis()], 1));
  return size;
}

// Makes one strip after the other, as an odometer counts.
bool advance(const Quantising& quantising, const Box& blocks, const StripSize& size, Dims& at) {
  for (int axis = quantising.column_axis(); axis >= 0; --axis) {
    std::int64_t step = 1;
    if (axis == quantising.row_axis()) step = size.rows;
    if (axis == quantising.column_axis()) step = size.columns;
    at[axis] += step;
    if (at[axis] < blocks.end(axis)) return true;
    at[axis] = blocks.origin[axis];
  }
  return false;
}

}  // namespace

Status quantise_region(const Quantising& quantising, DType dtype, const Box& region,
                       std::span<const TilePart> parts, const ReadMatrix& read,
                       std::vector<float>& memory) {
  if (region.is_empty()) return {};
  const Box blocks = blocks_of(quantising, region);
  const StripSize size = strip_size(quantising, blocks);
  Dims at = blocks.origin;
  do {
    Box strip{at, Dims::filled(at.size(), 1)};
    strip.shape[quantising.row_axis()] =
        std::min(size.rows, blocks.end(quantising.row_axis()) - at[quantising.row_axis()]);
    strip.shape[quantising.column_axis()] =
        std::min(size.columns, blocks.end(quantising.column_axis()) - at[quantising.column_axis()]);
    const Box matrix = matrix_of_blocks(quantising, strip);
    memory.resize(static_cast<std::size_t>(matrix.volume()));
    SW_TRY(read(matrix, memory));
    Strip made(quantising, strip, memory);
    SW_TRY(made.find_scales());
    for (const TilePart& part : parts) made.write(dtype, part);
  } while (advance(quantising, blocks, size, at));
  return {};
}

}  // namespace shardwright

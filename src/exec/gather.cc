// SPDX-License-Identifier: Apache-2.0
#include "exec/gather.h"

#include <algorithm>
#include <optional>

#include "base/checked.h"
#include "base/fail.h"
#include "exec/dequantise_region.h"
#include "exec/low_rank_region.h"
#include "exec/tile_reader.h"

namespace shardwright {
namespace {

// Reading over a gap of this size costs about as much as another read call.
constexpr std::int64_t kGapBytes = 4096;

// Number of contiguous runs that a region of a piece has in its file.
std::int64_t count_runs(const Dims& shape, const Dims& strides, int element_bytes) {
  const CopyLoops loops = collapse({shape, strides, strides});
  std::int64_t runs = 1;
  for (int axis = 0; axis < loops.shape.size(); ++axis) {
    const bool is_innermost_run =
        axis + 1 == loops.shape.size() && loops.source_strides[axis] == element_bytes;
    if (!is_innermost_run) runs *= loops.shape[axis];
  }
  return runs;
}

// In what the strides of a piece count.
std::int64_t useful_values(const StoredShape& stored) {
  std::int64_t useful = stored.element;
  for (const std::int64_t extent : stored.shape) useful *= extent;
  return useful;
}

// The axis along which words lie behind each other in runs that are worth a read call each, or -1.
int axis_of_runs(const SourcePiece& piece, const StoredShape& stored) {
  constexpr std::int64_t kLeastRunBytes = 512;
  if (axis_of_words(piece) < 0) return -1;
  for (int axis = 0; axis < stored.shape.size(); ++axis) {
    if (stored.strides[axis] != stored.element) continue;
    if (stored.shape[axis] * stored.element >= kLeastRunBytes * piece.per_byte) return axis;
  }
  return -1;
}

// Whether reading the region in one go reads little that it does not need, being `runs` runs.
bool is_dense(const SourcePiece& piece, const StoredShape& stored, std::int64_t runs) {
  const std::int64_t span = span_bytes(stored.shape, stored.strides, stored.element);
  return span - useful_values(stored) <= (runs - 1) * kGapBytes * piece.per_byte;
}

bool is_dense(const SourcePiece& piece, const StoredShape& stored) {
  return is_dense(piece, stored, count_runs(stored.shape, stored.strides, stored.element));
}

// The axis to halve: the one that steps furthest in the file.
int widest_axis(const Dims& shape, const Dims& strides) {
  int widest = -1;
  for (int axis = 0; axis < shape.size(); ++axis) {
    if (shape[axis] > 1 && (widest < 0 || strides[axis] > strides[widest])) widest = axis;
  }
  return widest;
}

// To the next of the rows or matrices that lie along an axis of the target, which need not be
// another one of the source.
void step_along(int axis, SourcePiece& piece) {
  piece.box.origin[axis] += 1;
  piece.offset += static_cast<std::uint64_t>(piece.strides[axis]);
  if (piece.quantised && piece.quantised->axis[axis] >= 0) {
    QuantisedPiece& quantised = *piece.quantised;
    quantised.first[static_cast<int>(quantised.axis[axis])] += quantised.step[axis];
  }
  if (axis != piece.update->each_axis) return;
  PieceUpdate& update = *piece.update;
  update.out.offset += static_cast<std::uint64_t>(update.out.each_stride);
  if (update.in) update.in->offset += static_cast<std::uint64_t>(update.in->each_stride);
}

// An infinity would look like a model's that diverged.
Status refuse_overflow(const SourcePiece& piece, SourceFiles& files) {
  const auto file = SW_TRY(files.get(piece.file));
  return fail(Code::kValueOverflow,
              "{}: its numbers and the adapter's are finite, but with what is added to them they "
              "are too large for float32; see that the adapter is of this model",
              file->name());
}

}  // namespace

std::byte* address_of(const TilePart& part, const Box& region) {
  std::byte* address = part.bytes;
  for (int axis = 0; axis < region.axes(); ++axis) {
    address += (region.origin[axis] - part.box.origin[axis]) * part.strides[axis];
  }
  return address;
}

Status Gather::read(const SourcePiece& piece, const Conversion& conversion,
                    std::span<const TilePart> parts) {
  if (piece.update) return read_rows_updated(piece, conversion, parts);
  return read_region(piece, piece.box, conversion, parts);
}

Status Gather::read_factor(const SourcePiece& factor, Dims strides, std::vector<float>& values) {
  values.resize(static_cast<std::size_t>(factor.box.volume()));
  const TilePart part{factor.box, reinterpret_cast<std::byte*>(values.data()),
                      byte_strides(strides, sizeof(float))};
  return read_region(factor, factor.box, {factor.dtype, DType::kF32, 0.0}, std::span(&part, 1));
}

// Rows that repeat one source row each get what is added to that one, matrices that lie one behind
// another each their own product.
Status Gather::read_rows_updated(const SourcePiece& piece, const Conversion& conversion,
                                 std::span<const TilePart> parts) {
  const PieceUpdate& update = *piece.update;
  for (int axis = 0; axis < piece.box.axes(); ++axis) {
    const bool is_named = axis == update.out.axis || (update.in && axis == update.in->axis);
    if (is_named || piece.box.shape[axis] == 1) continue;
    SourcePiece row = piece;
    row.box.shape[axis] = 1;
    for (std::int64_t i = 0; i < piece.box.shape[axis]; ++i) {
      SW_TRY(read_rows_updated(row, conversion, parts));
      step_along(axis, row);
    }
    return {};
  }
  return read_updated(piece, conversion, parts);
}

// Blocks of the stored values become float32, get what is added to them and go to their parts with
// the only rounding to the target's type.
Status Gather::read_updated(const SourcePiece& piece, const Conversion& conversion,
                            std::span<const TilePart> parts) {
  if (piece.box.is_empty()) return {};
  const UpdatedMatrix matrix(piece);
  const std::int64_t rank = piece.update->rank;
  std::vector<float> left;
  std::vector<float> right(1, 1.0F);
  std::vector<float> values;
  std::vector<float> stored;  // before anything is added
  for (std::int64_t column = 0; column < matrix.columns(); column += matrix.block_columns()) {
    const std::int64_t width = std::min(matrix.block_columns(), matrix.columns() - column);
    if (!matrix.is_ones()) {
      SW_TRY(read_factor(matrix.right(column, width), {1, width}, right));
    }
    for (std::int64_t row = 0; row < matrix.rows(); row += matrix.block_rows()) {
      const std::int64_t height = std::min(matrix.block_rows(), matrix.rows() - row);
      SW_TRY(read_factor(matrix.left(row, height), {rank, 1}, left));
      const Box block = matrix.block(row, column);
      values.resize(static_cast<std::size_t>(block.volume()));
      const TilePart dense =
          dense_part(block, reinterpret_cast<std::byte*>(values.data()), sizeof(float));
      SW_TRY(read_region(piece, block, {piece.dtype, DType::kF32, 0.0}, std::span(&dense, 1)));
      stored = values;
      matrix.apply(block, left, right, values);
      if (matrix.overflows(block, {left, right, values}, stored)) {
        return refuse_overflow(piece, *files_);
      }
      for (const TilePart& part : parts) {
        const std::optional<Box> common = intersect(part.box, block);
        if (!common) continue;
        const CopyLoops loops{common->shape, part.strides, dense.strides};
        SW_TRY(convert_region({DType::kF32, conversion.to, conversion.add}, loops,
                              address_of(dense, *common), address_of(part, *common)));
      }
    }
  }
  return {};
}

Result<bool> Gather::read_in_place(const SourcePiece& piece, const Box& region,
                                   std::span<const TilePart> parts) {
  const int element_bytes = bytes_of(piece.dtype);
  for (const TilePart& part : parts) {
    const std::optional<Box> common = intersect(part.box, region);
    if (!common) continue;
    if (!(*common == region)) return false;
    const CopyLoops loops = collapse({region.shape, part.strides, piece.strides});
    const bool is_one_run = loops.shape.empty() ||
                            (loops.shape.size() == 1 && loops.source_strides[0] == element_bytes &&
                             loops.target_strides[0] == element_bytes);
    if (!is_one_run) return false;
    const std::size_t bytes = static_cast<std::size_t>(region.volume() * element_bytes);
    SW_TRY(files_->read_at(piece.file, first_value(piece, region),
                           std::span(address_of(part, region), bytes)));
    return true;
  }
  return true;  // no part wants it
}

Status Gather::read_region(const SourcePiece& piece, const Box& region,
                           const Conversion& conversion, std::span<const TilePart> parts) {
  if (conversion.is_identity()) {
    const bool done = SW_TRY(read_in_place(piece, region, parts));
    if (done) return {};
  }
  if (region.is_empty()) return {};
  if (piece.quantised) return read_quantised(piece, region, conversion, parts);
  const Window values = value_window(piece, region);
  if (!is_dense(piece, stored_shape(piece, region)) || values.bytes > scratch_.size()) {
    return read_halves(piece, region, conversion, parts);
  }
  const std::span<std::byte> window = scratch_.first(values.bytes);
  SW_TRY(files_->read_at(piece.file, values.begin, window));
  for (const TilePart& part : parts) {
    const std::optional<Box> common = intersect(part.box, region);
    if (!common) continue;
    const CopyLoops loops{common->shape, part.strides, piece.strides};
    const std::byte* source = window.data() + (first_value(piece, *common) - values.begin);
    std::byte* target = address_of(part, *common);
    if (conversion.is_identity()) {
      strided_copy(loops, bytes_of(piece.dtype), source, target);
    } else {
      SW_TRY(convert_region(conversion, loops, source, target));
    }
  }
  return {};
}

Status Gather::read_halves(const SourcePiece& piece, const Box& region,
                           const Conversion& conversion, std::span<const TilePart> parts) {
  Box first = region;
  Box second = region;
  const int axis = widest_axis(region.shape, piece.strides);
  first.shape[axis] = half_of(piece, region, axis);
  second.origin[axis] += first.shape[axis];
  second.shape[axis] -= first.shape[axis];
  SW_TRY(read_region(piece, first, conversion, parts));
  return read_region(piece, second, conversion, parts);
}

// The words of a region without the gaps between their runs; gives the strides that they have then.
Result<Dims> Gather::read_runs(const SourcePiece& piece, const Box& region, int runs_axis,
                               std::span<std::byte> window) {
  const StoredShape stored = stored_shape(piece, region);
  const std::int64_t values = stored.shape[runs_axis] * stored.element;
  const std::uint64_t per_byte = static_cast<std::uint64_t>(piece.per_byte);
  const std::size_t run = static_cast<std::size_t>(values) / static_cast<std::size_t>(per_byte);
  Dims strides = piece.strides;
  std::int64_t runs = 1;
  for (int axis = strides.size() - 1; axis >= 0; --axis) {
    if (axis == runs_axis) continue;
    strides[axis] = runs * values;
    runs *= stored.shape[axis];
  }
  for (std::int64_t i = 0; i < runs; ++i) {
    std::uint64_t at = first_value(piece, region);
    std::int64_t rest = i;
    for (int axis = strides.size() - 1; axis >= 0; --axis) {
      if (axis == runs_axis) continue;
      at += static_cast<std::uint64_t>(rest % stored.shape[axis] * stored.strides[axis]);
      rest /= stored.shape[axis];
    }
    SW_TRY(files_->read_at(piece.file, at / per_byte,
                           window.subspan(static_cast<std::size_t>(i) * run, run)));
  }
  return strides;
}

Status Gather::read_quantised(const SourcePiece& piece, const Box& region,
                              const Conversion& conversion, std::span<const TilePart> parts) {
  const Catalog& catalog = *piece.quantised->catalog;
  const QuantisedSource& source = *piece.quantised->source;
  std::span<std::byte> free = scratch_;
  const auto take = [&](std::uint32_t file, const Window& window) -> Result<std::byte*> {
    const std::span<std::byte> bytes = free.first(window.bytes);
    free = free.subspan(window.bytes);
    if (!bytes.empty()) SW_TRY(files_->read_at(file, window.begin, bytes));
    return bytes.data();
  };
  const auto file_of = [&](std::uint32_t tensor) { return catalog.tensors[tensor].chunks.file(0); };

  const Window groups = group_window(piece, region);
  if (groups.bytes > free.size()) return read_halves(piece, region, conversion, parts);
  LoadedWindow group_bytes{nullptr, groups.begin};
  if (source.groups) group_bytes.bytes = SW_TRY(take(file_of(source.groups->tensor), groups));
  const std::optional<GroupRange> range = SW_TRY(group_range(piece, region, group_bytes.bytes));

  Window values = value_window(piece, region);
  const StoredShape stored = stored_shape(piece, region);
  const int runs_axis = axis_of_runs(piece, stored);
  bool are_dense = is_dense(piece, stored);
  if (runs_axis >= 0) {  // which need not be the last axis
    const std::int64_t run = stored.shape[runs_axis] * stored.element;
    are_dense = is_dense(piece, stored, useful_values(stored) / run);
  }
  if (!are_dense && runs_axis >= 0) {
    values.bytes = static_cast<std::uint64_t>(useful_values(stored) / piece.per_byte);
  }
  const Window scales = scale_window(piece, region, range);
  const Window zeros = zero_window(piece, region, range);
  const Window second = second_window(piece);
  if ((!are_dense && runs_axis < 0) ||
      values.bytes + scales.bytes + zeros.bytes + second.bytes > free.size()) {
    return read_halves(piece, region, conversion, parts);
  }
  SourcePiece loaded_piece = piece;
  std::uint64_t before = values.begin * static_cast<std::uint64_t>(piece.per_byte);
  const std::byte* value_bytes = free.data();
  if (are_dense) {
    value_bytes = SW_TRY(take(piece.file, values));
  } else {
    loaded_piece.strides = SW_TRY(read_runs(piece, region, runs_axis, free.first(values.bytes)));
    before = first_value(loaded_piece, region);
    free = free.subspan(values.bytes);
  }
  LoadedWindow scale_bytes{SW_TRY(take(file_of(source.scales), scales)), scales.begin};
  LoadedWindow zero_bytes{nullptr, zeros.begin};
  if (source.zeros) zero_bytes.bytes = SW_TRY(take(file_of(source.zeros->tensor), zeros));
  LoadedWindow second_bytes{nullptr, second.begin};
  if (source.second) second_bytes.bytes = SW_TRY(take(file_of(source.second->tensor), second));
  for (const TilePart& part : parts) {
    const std::optional<Box> common = intersect(part.box, region);
    if (!common) continue;
    const std::uint64_t first = first_value(loaded_piece, *common) - before;
    const LoadedRegion loaded{
        loaded_piece, *common,    value_bytes,  static_cast<std::int64_t>(first),
        scale_bytes,  zero_bytes, second_bytes, group_bytes};
    SW_TRY(dequantise_region(loaded, conversion, address_of(part, *common), part.strides));
  }
  return {};
}

}  // namespace shardwright

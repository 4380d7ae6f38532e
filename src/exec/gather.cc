// SPDX-License-Identifier: Apache-2.0
#include "exec/gather.h"

#include <optional>

#include "base/checked.h"
#include "exec/dequantise_region.h"

namespace shardwright {
namespace {

// Reading over a gap of this size costs about as much as another read call.
constexpr std::int64_t kGapBytes = 4096;

std::uint64_t offset_of(const SourcePiece& piece, const Box& region) {
  std::uint64_t offset = piece.offset;
  for (int axis = 0; axis < region.axes(); ++axis) {
    const std::int64_t moved = region.origin[axis] - piece.box.origin[axis];
    offset += static_cast<std::uint64_t>(moved * piece.strides[axis]);
  }
  return offset;
}

std::byte* address_of(const Part& part, const Box& region) {
  std::byte* address = part.bytes;
  for (int axis = 0; axis < region.axes(); ++axis) {
    address += (region.origin[axis] - part.box.origin[axis]) * part.strides[axis];
  }
  return address;
}

// What the strides of a piece count: bytes of an element, or fp4 values.
int element_size(const SourcePiece& piece) {
  return piece.per_byte > 1 ? 1 : bytes_of(piece.dtype);
}

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

Window value_window(const SourcePiece& piece, const Box& region) {
  const std::uint64_t per_byte = static_cast<std::uint64_t>(piece.per_byte);
  const std::uint64_t first = offset_of(piece, region);
  const std::uint64_t span =
      static_cast<std::uint64_t>(span_bytes(region.shape, piece.strides, element_size(piece)));
  const std::uint64_t begin = first / per_byte;
  return {begin, ceil_div(first + span, per_byte) - begin};
}

// Whether reading the region in one go reads little that it does not need.
bool is_dense(const SourcePiece& piece, const Box& region) {
  const int size = element_size(piece);
  const std::int64_t span = span_bytes(region.shape, piece.strides, size);
  const std::int64_t useful = region.volume() * size;
  const std::int64_t gaps = count_runs(region.shape, piece.strides, size) - 1;
  return span - useful <= gaps * kGapBytes * piece.per_byte;
}

// The axis to halve: the one that steps furthest in the file.
int widest_axis(const Dims& shape, const Dims& strides) {
  int widest = -1;
  for (int axis = 0; axis < shape.size(); ++axis) {
    if (shape[axis] > 1 && (widest < 0 || strides[axis] > strides[widest])) widest = axis;
  }
  return widest;
}

Status convert_axes(const Conversion& conversion, const CopyLoops& loops, int axis,
                    const std::byte* source, std::byte* target) {
  if (loops.shape.empty()) return convert_run(conversion, 1, source, 0, target, 0);
  if (axis + 1 == loops.shape.size()) {
    return convert_run(conversion, loops.shape[axis], source, loops.source_strides[axis], target,
                       loops.target_strides[axis]);
  }
  for (std::int64_t i = 0; i < loops.shape[axis]; ++i) {
    SW_TRY(convert_axes(conversion, loops, axis + 1, source + i * loops.source_strides[axis],
                        target + i * loops.target_strides[axis]));
  }
  return {};
}

}  // namespace

Status Gather::read(const SourcePiece& piece, const Conversion& conversion,
                    std::span<const Part> parts) {
  return read_region(piece, piece.box, conversion, parts);
}

Result<bool> Gather::read_in_place(const SourcePiece& piece, const Box& region,
                                   std::span<const Part> parts) {
  const int element_bytes = bytes_of(piece.dtype);
  for (const Part& part : parts) {
    const std::optional<Box> common = intersect(part.box, region);
    if (!common) continue;
    if (!(*common == region)) return false;
    const CopyLoops loops = collapse({region.shape, part.strides, piece.strides});
    const bool is_one_run = loops.shape.empty() ||
                            (loops.shape.size() == 1 && loops.source_strides[0] == element_bytes &&
                             loops.target_strides[0] == element_bytes);
    if (!is_one_run) return false;
    const std::size_t bytes = static_cast<std::size_t>(region.volume() * element_bytes);
    SW_TRY(files_->read_at(piece.file, offset_of(piece, region),
                           std::span(address_of(part, region), bytes)));
    return true;
  }
  return true;  // no part wants it
}

Status Gather::read_region(const SourcePiece& piece, const Box& region,
                           const Conversion& conversion, std::span<const Part> parts) {
  if (conversion.is_identity()) {
    const bool done = SW_TRY(read_in_place(piece, region, parts));
    if (done) return {};
  }
  if (region.is_empty()) return {};
  const Window values = value_window(piece, region);
  const Window scales = piece.scales ? scale_window(piece, region) : Window{};
  if (!is_dense(piece, region) || values.bytes + scales.bytes > scratch_.size()) {
    Box first = region;
    Box second = region;
    const int axis = widest_axis(region.shape, piece.strides);
    first.shape[axis] = region.shape[axis] / 2;
    second.origin[axis] += first.shape[axis];
    second.shape[axis] -= first.shape[axis];
    SW_TRY(read_region(piece, first, conversion, parts));
    return read_region(piece, second, conversion, parts);
  }
  const std::span<std::byte> window = scratch_.first(values.bytes);
  SW_TRY(files_->read_at(piece.file, values.begin, window));
  const std::span<std::byte> scale_bytes = scratch_.subspan(values.bytes, scales.bytes);
  if (piece.scales) SW_TRY(files_->read_at(piece.scales->file, scales.begin, scale_bytes));
  for (const Part& part : parts) {
    const std::optional<Box> common = intersect(part.box, region);
    if (!common) continue;
    const CopyLoops loops{common->shape, part.strides, piece.strides};
    const std::uint64_t first =
        offset_of(piece, *common) - values.begin * static_cast<std::uint64_t>(piece.per_byte);
    const std::byte* source = window.data() + first;
    std::byte* target = address_of(part, *common);
    if (piece.scales) {
      const LoadedRegion loaded{
          piece,       *common, window.data(), static_cast<std::int64_t>(first), scale_bytes.data(),
          scales.begin};
      SW_TRY(dequantise_region(loaded, conversion, target, part.strides));
    } else if (conversion.is_identity()) {
      strided_copy(loops, bytes_of(piece.dtype), source, target);
    } else {
      SW_TRY(convert_axes(conversion, collapse(loops), 0, source, target));
    }
  }
  return {};
}

}  // namespace shardwright

// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <limits>

#include "base/checked.h"
#include "base/fail.h"
#include "exec/dequantise_region.h"
#include "plan/quantised.h"
#include "tensor/strided_copy.h"

namespace shardwright {
namespace {

const StoredTensor& tensor_of(const QuantisedPiece& quantised, std::uint32_t index) {
  return quantised.catalog->tensors[index];
}

// Coordinates along an axis of the values, from the first to the last that a region has.
struct Coordinates {
  std::int64_t first = 0;
  std::int64_t last = 0;
};

Coordinates coordinates(const SourcePiece& piece, const Box& region, int source_axis) {
  const QuantisedPiece& quantised = *piece.quantised;
  const std::int64_t fixed = quantised.first[source_axis];
  for (int axis = 0; axis < region.axes(); ++axis) {
    if (quantised.axis[axis] != source_axis) continue;
    const std::int64_t moved = region.origin[axis] - piece.box.origin[axis];
    const std::int64_t step = quantised.step[axis];
    return {fixed + moved * step, fixed + (moved + region.shape[axis] - 1) * step};
  }
  return {fixed, fixed};
}

bool has_words(const SourcePiece& piece) {
  return piece.quantised && piece.quantised->source->words.axis >= 0;
}

// Entries of a grid that a region has, from the first to the last.
struct Entries {
  std::int64_t first = 0;
  std::int64_t last = 0;
};

Entries entries(const SourcePiece& piece, const Box& region, const Dims& block, const Dims& stride,
                const std::optional<GroupRange>& range) {
  const std::optional<ColumnGroups>& groups = piece.quantised->source->groups;
  Entries result;
  for (int axis = 0; axis < block.size(); ++axis) {
    const Coordinates along = coordinates(piece, region, axis);
    const bool is_grouped = groups && groups->axis == axis && range;
    const std::int64_t low = is_grouped ? range->first : along.first / block[axis];
    const std::int64_t high = is_grouped ? range->last : along.last / block[axis];
    result.first += low * stride[axis];
    result.last += high * stride[axis];
  }
  return result;
}

Window bytes_of_entries(const StoredTensor& tensor, const Entries& entries, int bits) {
  const std::uint64_t begin = static_cast<std::uint64_t>(entries.first * bits / 8);
  const std::uint64_t end =
      static_cast<std::uint64_t>(ceil_div<std::int64_t>((entries.last + 1) * bits, 8));
  return {tensor.chunks.range(0).offset + begin, end - begin};
}

}  // namespace

int axis_of_words(const SourcePiece& piece) {
  if (!has_words(piece)) return -1;
  const int words_axis = piece.quantised->source->words.axis;
  for (int axis = 0; axis < piece.quantised->axis.size(); ++axis) {
    if (piece.quantised->axis[axis] == words_axis) return axis;
  }
  return -1;
}

std::int64_t half_of(const SourcePiece& piece, const Box& region, int axis) {
  const std::int64_t half = region.shape[axis] / 2;
  if (axis != axis_of_words(piece) || piece.quantised->step[axis] != 1) return half;
  const QuantisedSource& source = *piece.quantised->source;
  const std::int64_t first = coordinates(piece, region, source.words.axis).first;
  const std::int64_t behind = (first + half) % values_per_word(source);
  if (behind < half) return half - behind;
  const std::int64_t more = half + values_per_word(source) - behind;
  return more < region.shape[axis] ? more : half;
}

std::uint64_t first_value(const SourcePiece& piece, const Box& region) {
  const int words = axis_of_words(piece);
  std::uint64_t offset = piece.offset;
  for (int axis = 0; axis < region.axes(); ++axis) {
    std::int64_t moved = region.origin[axis] - piece.box.origin[axis];
    if (axis == words) {
      const QuantisedPiece& quantised = *piece.quantised;
      const int per_word = values_per_word(*quantised.source);
      const std::int64_t first = quantised.first[quantised.source->words.axis];
      moved = (first + moved * quantised.step[axis]) / per_word - first / per_word;
    }
    offset += static_cast<std::uint64_t>(moved * piece.strides[axis]);
  }
  return offset;
}

StoredShape stored_shape(const SourcePiece& piece, const Box& region) {
  StoredShape stored{region.shape, piece.strides, 1};
  if (piece.per_byte == 1) stored.element = bytes_of(piece.dtype);
  if (!has_words(piece)) return stored;
  const QuantisedSource& source = *piece.quantised->source;
  stored.element = values_per_word(source);
  const int axis = axis_of_words(piece);
  if (axis < 0) return stored;
  const Coordinates along = coordinates(piece, region, source.words.axis);
  stored.shape[axis] = along.last / stored.element - along.first / stored.element + 1;
  return stored;
}

Window value_window(const SourcePiece& piece, const Box& region) {
  const std::uint64_t per_byte = static_cast<std::uint64_t>(piece.per_byte);
  const StoredShape stored = stored_shape(piece, region);
  std::uint64_t first = first_value(piece, region);
  if (has_words(piece) && axis_of_words(piece) < 0) {
    // No axis steps through the words: the one that all lie in is read from its beginning.
    const WordPacking& words = piece.quantised->source->words;
    first -= static_cast<std::uint64_t>(
        slot_of(words, stored.element, piece.quantised->first[words.axis]));
  }
  const std::uint64_t span =
      static_cast<std::uint64_t>(span_bytes(stored.shape, stored.strides, stored.element));
  const std::uint64_t begin = first / per_byte;
  return {begin, ceil_div(first + span, per_byte) - begin};
}

Window group_window(const SourcePiece& piece, const Box& region) {
  const QuantisedPiece& quantised = *piece.quantised;
  const std::optional<ColumnGroups>& groups = quantised.source->groups;
  if (!groups) return {};
  const Coordinates along = coordinates(piece, region, groups->axis);
  return bytes_of_entries(tensor_of(quantised, groups->tensor), {along.first, along.last}, 32);
}

Result<std::optional<GroupRange>> group_range(const SourcePiece& piece, const Box& region,
                                              const std::byte* groups) {
  const QuantisedPiece& quantised = *piece.quantised;
  if (!quantised.source->groups) return std::optional<GroupRange>();
  const int axis = quantised.source->groups->axis;
  const StoredTensor& values = tensor_of(quantised, quantised.source->values);
  const Coordinates along = coordinates(piece, region, axis);
  const std::int64_t last_group = (values.desc.shape[axis] - 1) / quantised.source->block[axis];
  GroupRange range{std::numeric_limits<std::int64_t>::max(), 0};
  for (std::int64_t i = 0; i <= along.last - along.first; ++i) {
    std::int32_t group = 0;
    std::memcpy(&group, groups + i * std::int64_t{sizeof group}, sizeof group);
    if (group < 0 || group > last_group) {
      const StoredTensor& tensor = tensor_of(quantised, quantised.source->groups->tensor);
      return fail(Code::kOutOfBounds,
                  "{}: tensor {}: found group {} for column {}, expected 0 to {}",
                  quantised.catalog->files[tensor.chunks.file(0)], tensor.desc.name, group,
                  along.first + i, last_group);
    }
    range.first = std::min<std::int64_t>(range.first, group);
    range.last = std::max<std::int64_t>(range.last, group);
  }
  return std::optional(range);
}

Window scale_window(const SourcePiece& piece, const Box& region,
                    const std::optional<GroupRange>& range) {
  const QuantisedSource& source = *piece.quantised->source;
  const StoredTensor& scales = tensor_of(*piece.quantised, source.scales);
  return bytes_of_entries(scales, entries(piece, region, source.block, source.stride, range),
                          8 * bytes_of(scales.desc.dtype));
}

Window zero_window(const SourcePiece& piece, const Box& region,
                   const std::optional<GroupRange>& range) {
  const QuantisedSource& source = *piece.quantised->source;
  if (!source.zeros) return {};
  const ZeroPoints& zeros = *source.zeros;
  Entries found = entries(piece, region, zeros.block, zeros.stride, range);
  if (zeros.words.axis >= 0) found.last += values_per_word(source) - 1;
  return bytes_of_entries(tensor_of(*piece.quantised, zeros.tensor), found, source.bits);
}

Window second_window(const SourcePiece& piece) {
  const QuantisedSource& source = *piece.quantised->source;
  if (!source.second) return {};
  const ByteRange range = tensor_of(*piece.quantised, source.second->tensor).chunks.range(0);
  return {range.offset, range.length};
}

}  // namespace shardwright

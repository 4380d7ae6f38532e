// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "plan/lower.h"
#include "tensor/convert.h"

namespace shardwright {

/// Bytes of a source file that a region needs.
struct Window {
  std::uint64_t begin = 0;
  std::uint64_t bytes = 0;
};

/// Groups from the first to the last that a region has.
struct GroupRange {
  std::int64_t first = 0;
  std::int64_t last = 0;
};

/// Where the values of a region lie, whole words where it has words. REQUIRES: `region` lies inside
/// piece.box and is not empty, as below.
[[nodiscard]] Window value_window(const SourcePiece& piece, const Box& region);
/// Its first element's value, or the first of its word, counted like piece.offset.
[[nodiscard]] std::uint64_t first_value(const SourcePiece& piece, const Box& region);
/// How the values of a region lie in their file: extents and steps, in what piece.strides counts,
/// with words as elements where there are words; and the size of an element.
struct StoredShape {
  Dims shape;
  Dims strides;
  int element = 1;
};
[[nodiscard]] StoredShape stored_shape(const SourcePiece& piece, const Box& region);
/// The target axis that steps through words of several values, or -1.
[[nodiscard]] int axis_of_words(const SourcePiece& piece);
/// How many elements of `axis` the first of two halves has: where it steps through words they end
/// with one, if they can. REQUIRES: region.shape[axis] > 1.
[[nodiscard]] std::int64_t half_of(const SourcePiece& piece, const Box& region, int axis);

/// Where the groups of a region lie; empty without groups. REQUIRES: piece.quantised, as below.
[[nodiscard]] Window group_window(const SourcePiece& piece, const Box& region);
/// Which groups those are. Error: kOutOfBounds with the tensor and the column for one that has no
/// scales.
[[nodiscard]] Result<std::optional<GroupRange>> group_range(const SourcePiece& piece,
                                                            const Box& region,
                                                            const std::byte* groups);
/// Where the scales of a region lie, its zeros and its second scale (empty where it has none).
/// `range` are its groups, where it has some.
[[nodiscard]] Window scale_window(const SourcePiece& piece, const Box& region,
                                  const std::optional<GroupRange>& range = {});
[[nodiscard]] Window zero_window(const SourcePiece& piece, const Box& region,
                                 const std::optional<GroupRange>& range = {});
[[nodiscard]] Window second_window(const SourcePiece& piece);

/// Bytes of a file in memory.
struct LoadedWindow {
  const std::byte* bytes = nullptr;
  std::uint64_t begin = 0;  ///< place in its file of what `bytes` points to
};

/// A region of a quantised piece, with what it needs in memory.
struct LoadedRegion {
  const SourcePiece& piece;
  const Box& region;
  const std::byte* values = nullptr;
  std::int64_t first_value = 0;  ///< as first_value() gives it, but counted from `values`
  LoadedWindow scales;
  LoadedWindow zeros = {};
  LoadedWindow second = {};
  LoadedWindow groups = {};  ///< as group_window() gives it
};

/// Whether the scale of all scales of a tensor is a number to multiply by or to divide by. It is
/// made of the largest value, which is 0 of no tensor that has a scale of this kind.
[[nodiscard]] bool is_factor(float scale_of_all);

/// What is said of a scale that is NaN or infinite. The code that released the model makes NaNs or
/// infinities of all values that it is of, and no quantiser writes one.
[[nodiscard]] Error unusable_scale(const Catalog& catalog, std::uint32_t scales,
                                   std::int64_t number);

/// Writes value times scale, or (value - zero) times scale, as float32 rounded to conversion.to;
/// conversion.add comes before the rounding. A second scale is multiplied with the scale (or
/// divides it) in float32 first. `target` is the place of region.origin, `strides` are bytes.
/// Products too large for float32 or bfloat16 are infinite; errors: kValueOverflow as convert_run
/// for other types, kPayloadDamaged for a scale that is NaN.
[[nodiscard]] Status dequantise_region(const LoadedRegion& loaded, const Conversion& conversion,
                                       std::byte* target, const Dims& strides);

}  // namespace shardwright

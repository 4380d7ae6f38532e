// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "plan/lower.h"
#include "tensor/convert.h"

namespace shardwright {

/// Bytes of a source file that a region needs.
struct Window {
  std::uint64_t begin = 0;
  std::uint64_t bytes = 0;
};

/// Where the scales of a region lie. REQUIRES: piece.scales; `region` lies inside piece.box and is
/// not empty.
[[nodiscard]] Window scale_window(const SourcePiece& piece, const Box& region);

/// A region of a quantised piece, with what it needs in memory.
struct LoadedRegion {
  const SourcePiece& piece;
  const Box& region;
  const std::byte* values = nullptr;
  std::int64_t first_value = 0;  ///< of region.origin, counted from `values`
  const std::byte* scales = nullptr;
  std::uint64_t scales_begin = 0;  ///< place in its file of what `scales` points to
};

/// Writes value times scale, as float32 rounded to conversion.to; conversion.add comes before the
/// rounding. `target` is the place of region.origin, `strides` are bytes. Products too large for
/// float32 or bfloat16 are infinite; error: kValueOverflow as convert_run for other types.
[[nodiscard]] Status dequantise_region(const LoadedRegion& loaded, const Conversion& conversion,
                                       std::byte* target, const Dims& strides);

}  // namespace shardwright

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "io/source_files.h"
#include "plan/lower.h"
#include "tensor/convert.h"
#include "tensor/strided_copy.h"

namespace shardwright {

/// A region of a target tensor laid out densely in memory.
struct TilePart {
  Box box;
  std::byte* bytes = nullptr;
  Dims strides;  ///< bytes along the tensor's axes
};

/// Where a region that lies in a part begins.
[[nodiscard]] std::byte* address_of(const TilePart& part, const Box& region);

/// Reads source pieces into parts: straight into place where the bytes run on in both, through a
/// scratch buffer where they are strided, converted or multiplied with scales. Where something is
/// added, blocks of float32 lie beside it (UpdatedMatrix::kMostBytes). One per thread.
class Gather {
 public:
  /// Borrows both. REQUIRES: scratch holds at least one element of any type with all
  /// that it is multiplied with (32 bytes).
  Gather(SourceFiles& files, std::span<std::byte> scratch) : files_(&files), scratch_(scratch) {}

  /// Fills every element of `parts` that `piece` covers.
  [[nodiscard]] Status read(const SourcePiece& piece, const Conversion& conversion,
                            std::span<const TilePart> parts);

 private:
  [[nodiscard]] Status read_region(const SourcePiece& piece, const Box& region,
                                   const Conversion& conversion, std::span<const TilePart> parts);
  [[nodiscard]] Status read_rows_updated(const SourcePiece& piece, const Conversion& conversion,
                                         std::span<const TilePart> parts);
  [[nodiscard]] Status read_updated(const SourcePiece& piece, const Conversion& conversion,
                                    std::span<const TilePart> parts);
  /// A [count, rank] piece of a factor, as float32 with these strides in floats.
  [[nodiscard]] Status read_factor(const SourcePiece& factor, Dims strides,
                                   std::vector<float>& values);
  [[nodiscard]] Status read_halves(const SourcePiece& piece, const Box& region,
                                   const Conversion& conversion, std::span<const TilePart> parts);
  [[nodiscard]] Result<Dims> read_runs(const SourcePiece& piece, const Box& region, int runs_axis,
                                       std::span<std::byte> window);
  [[nodiscard]] Status read_quantised(const SourcePiece& piece, const Box& region,
                                      const Conversion& conversion,
                                      std::span<const TilePart> parts);
  [[nodiscard]] Result<bool> read_in_place(const SourcePiece& piece, const Box& region,
                                           std::span<const TilePart> parts);

  SourceFiles* files_;
  std::span<std::byte> scratch_;
};

}  // namespace shardwright

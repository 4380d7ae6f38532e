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
struct Part {
  Box box;
  std::byte* bytes = nullptr;
  Dims strides;  ///< bytes along the tensor's axes
};

/// Reads source pieces into parts: straight into place where the bytes run on in both, through a
/// scratch buffer where they are strided, converted or multiplied with scales. One per thread.
class Gather {
 public:
  /// Borrows both. REQUIRES: scratch holds at least one element of any type (16 bytes).
  Gather(SourceFiles& files, std::span<std::byte> scratch) : files_(&files), scratch_(scratch) {}

  /// Fills every element of `parts` that `piece` covers.
  [[nodiscard]] Status read(const SourcePiece& piece, const Conversion& conversion,
                            std::span<const Part> parts);

 private:
  [[nodiscard]] Status read_region(const SourcePiece& piece, const Box& region,
                                   const Conversion& conversion, std::span<const Part> parts);
  [[nodiscard]] Result<bool> read_in_place(const SourcePiece& piece, const Box& region,
                                           std::span<const Part> parts);

  SourceFiles* files_;
  std::span<std::byte> scratch_;
};

}  // namespace shardwright

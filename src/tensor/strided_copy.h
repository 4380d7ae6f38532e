// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "shardwright/tensor.h"

namespace shardwright {

/// A nest of loops over equally shaped regions of two byte buffers, strides in bytes.
struct CopyLoops {
  Dims shape;
  Dims target_strides;
  Dims source_strides;
};

/// Drops axes of extent 1 and joins neighbours that run on in both buffers, so that a dense region
/// becomes one run. The order of axes stays.
[[nodiscard]] CopyLoops collapse(const CopyLoops& loops);

/// Copies a region element by element in value, run by run in practice. The buffers do not overlap.
/// REQUIRES: every addressed byte lies inside the buffers.
void strided_copy(const CopyLoops& loops, int element_bytes, const std::byte* source,
                  std::byte* target);

/// Number of bytes between the first and behind the last byte that `strides` (non-negative)
/// address.
[[nodiscard]] std::int64_t span_bytes(const Dims& shape, const Dims& strides, int element_bytes);

}  // namespace shardwright

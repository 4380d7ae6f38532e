// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "shardwright/catalog.h"

namespace shardwright {

/// One reason why the chunks of a tensor do not store each element exactly once.
struct CoverageDefect {
  Code code = Code::kHole;  ///< kHole, kOverlap or kOutOfBounds
  Box box;                  ///< what no chunk holds, or the chunk
  std::size_t chunk = 0;    ///< meaningless for holes
  std::size_t other = 0;    ///< the chunk that it overlaps
};

/// All of them, up to `limit`; holes as disjoint boxes. Where chunks are out of bounds nothing else
/// is looked at. Error: a shape that has no size.
[[nodiscard]] Result<std::vector<CoverageDefect>> coverage_defects(const StoredTensor& tensor,
                                                                   Replicas replicas,
                                                                   std::size_t limit);

}  // namespace shardwright

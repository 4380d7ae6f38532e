// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "exec/gather.h"
#include "shardwright/plan.h"

namespace shardwright {

/// What of a matrix is in memory at once while it is quantised.
inline constexpr std::int64_t kMostMatrixBytes = std::int64_t{4} << 20;

/// Fills a box of the matrix, row-major.
using ReadMatrix = std::function<Status(const Box&, std::span<float>)>;

/// Fills `parts` of `region` of a target tensor of this type with the values or scales of a matrix,
/// of which whole blocks are read: at most kMostMatrixBytes at a time, or one block. `memory` is
/// kept between calls. REQUIRES: check_quantising(). Error: kValueOverflow for numbers that are not
/// finite; those of reading.
[[nodiscard]] Status quantise_region(const Quantising& quantising, DType dtype, const Box& region,
                                     std::span<const TilePart> parts, const ReadMatrix& read,
                                     std::vector<float>& memory);

}  // namespace shardwright

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <expected>
#include <string>

#include "base/fail.h"
#include "model/transform.h"

namespace shardwright {

/// Shapes that a transform doesn't fit, in words (kShapeMismatch).
[[nodiscard]] std::unexpected<Error> mismatch(const std::string& found,
                                              const std::string& expected);

/// `shape` with the extent of one axis replaced.
[[nodiscard]] Dims with_extent(Dims shape, int axis, std::int64_t extent);

/// Whether it has that axis (kShapeMismatch).
[[nodiscard]] Status check_axis(const Dims& shape, int axis);

/// The one piece of two tensors that are the same.
[[nodiscard]] Piece whole_piece(const Dims& shape);

}  // namespace shardwright

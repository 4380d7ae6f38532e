// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "shardwright/tensor.h"

namespace shardwright {

/// How two runs of elements of one type differ.
struct ElementDifference {
  std::uint64_t differing = 0;
  std::int64_t first = 0;  ///< position of the first that differs; meaningless without one
  double max_delta = 0.0;  ///< infinite where one of two is NaN

  /// Takes in what another part of the same tensor shows.
  void add(const ElementDifference& other);
};

/// Compares element by element: equal bits are equal, NaNs too. With a tolerance, numbers of real
/// types (not integers) are also equal when they are no further apart. REQUIRES: equal lengths.
[[nodiscard]] ElementDifference compare_elements(DType dtype, std::span<const std::byte> left,
                                                 std::span<const std::byte> right,
                                                 std::optional<double> tolerance);

/// Position in the whole tensor of the element at row-major position `at` of `box`.
[[nodiscard]] std::int64_t row_major_position(const Dims& shape, const Box& box, std::int64_t at);

/// The index of a row-major position.
[[nodiscard]] Dims index_of(const Dims& shape, std::int64_t position);

}  // namespace shardwright

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "shardwright/tensor.h"

namespace shardwright {

/// What of a matrix a target tensor holds that stores it as small numbers and their scales. Blocks
/// lie over the last two axes of the matrix; axes before them count matrices.
struct Quantising {
  enum class Scheme : std::uint8_t {
    kFp8,    ///< e4m3, as DeepSeek-V3: values of the matrix's shape, a scale for each block
    kMxfp4,  ///< fp4 in pairs, as GPT-OSS: values [..., rows, groups, 16], scales [..., rows,
             ///< groups]
  };
  enum class Part : std::uint8_t { kValues, kScales };
  Scheme scheme = Scheme::kFp8;
  Part part = Part::kValues;
  Dims shape;                        ///< of the matrix: what the recipe's views fill
  std::int64_t block_rows = 128;     ///< of kMxfp4 1
  std::int64_t block_columns = 128;  ///< of kMxfp4 32
  bool has_exponents = false;        ///< scales are powers of two; of kMxfp4 always

  [[nodiscard]] int row_axis() const { return shape.size() - 2; }
  [[nodiscard]] int column_axis() const { return shape.size() - 1; }
};

/// One scale for each block: [..., blocks of rows, blocks of columns]. REQUIRES: two axes or more.
[[nodiscard]] Dims scale_shape(const Quantising& quantising);

/// The shape that the values are stored in. REQUIRES: as scale_shape().
[[nodiscard]] Dims value_shape(const Quantising& quantising);

}  // namespace shardwright

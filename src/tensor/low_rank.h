// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace shardwright {

/// Two factors of a low-rank product, dense and row-major.
struct LowRankFactors {
  const float* left = nullptr;   ///< [rows, rank]
  const float* right = nullptr;  ///< [rank, columns]
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t rank = 0;
};

/// values[r][c] += scale * (sum over k of left[r][k] * right[k][c]), `values` dense. The sum begins
/// with zero and takes k in order, each step one fused multiply-add of float32; then the product
/// with `scale` and the sum with the value are each rounded to float32. So the bits depend neither
/// on the processor nor on how a matrix is cut into blocks.
void add_low_rank(const LowRankFactors& factors, float scale, float* values);

}  // namespace shardwright

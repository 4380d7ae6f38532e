// SPDX-License-Identifier: Apache-2.0
#include "tensor/low_rank.h"

#include <cmath>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

// This file is compiled with -ffp-contract=off: what the header calls two roundings must not become
// one where the processor could do that.
namespace shardwright {
namespace {

// Where the processor has no fused multiply-add, the C library has one that gives the same bits.
void add_row(const LowRankFactors& factors, float scale, std::int64_t row, float* values) {
  const float* left = factors.left + row * factors.rank;
  for (std::int64_t column = 0; column < factors.columns; ++column) {
    float sum = 0.0F;
    for (std::int64_t k = 0; k < factors.rank; ++k) {
      sum = std::fma(left[k], factors.right[k * factors.columns + column], sum);
    }
    const float product = scale * sum;
    values[row * factors.columns + column] += product;
  }
}

#if defined(__x86_64__)
constexpr std::int64_t kLanes = 8;
constexpr std::int64_t kVectors = 4;  // sums that stay in registers while k runs

__attribute__((target("avx2,fma"))) void add_with_avx2(const LowRankFactors& factors, float scale,
                                                       float* values) {
  const __m256 scales = _mm256_set1_ps(scale);
  for (std::int64_t row = 0; row < factors.rows; ++row) {
    const float* left = factors.left + row * factors.rank;
    float* target = values + row * factors.columns;
    std::int64_t column = 0;
    for (; column + kVectors * kLanes <= factors.columns; column += kVectors * kLanes) {
      __m256 sums[kVectors] = {_mm256_setzero_ps(), _mm256_setzero_ps(), _mm256_setzero_ps(),
                               _mm256_setzero_ps()};
      for (std::int64_t k = 0; k < factors.rank; ++k) {
        const __m256 factor = _mm256_broadcast_ss(left + k);
        const float* right = factors.right + k * factors.columns + column;
        for (std::int64_t v = 0; v < kVectors; ++v) {
          sums[v] = _mm256_fmadd_ps(factor, _mm256_loadu_ps(right + v * kLanes), sums[v]);
        }
      }
      for (std::int64_t v = 0; v < kVectors; ++v) {
        float* place = target + column + v * kLanes;
        const __m256 product = _mm256_mul_ps(scales, sums[v]);
        _mm256_storeu_ps(place, _mm256_add_ps(_mm256_loadu_ps(place), product));
      }
    }
    for (; column < factors.columns; ++column) {
      float sum = 0.0F;
      for (std::int64_t k = 0; k < factors.rank; ++k) {
        sum = __builtin_fmaf(left[k], factors.right[k * factors.columns + column], sum);
      }
      const float product = scale * sum;
      target[column] += product;
    }
  }
}
#endif

}  // namespace

void add_low_rank(const LowRankFactors& factors, float scale, float* values) {
#if defined(__x86_64__)
  static const bool has_fma = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  if (has_fma) {
    add_with_avx2(factors, scale, values);
    return;
  }
#endif
  for (std::int64_t row = 0; row < factors.rows; ++row) {
    add_row(factors, scale, row, values);
  }
}

}  // namespace shardwright

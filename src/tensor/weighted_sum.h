// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace shardwright {

/// sums[i] = weight * values[i]: one rounding to float32. Gives the first i where a finite value
/// makes a sum that is not, or `count`.
[[nodiscard]] std::int64_t begin_sum(std::int64_t count, float weight, const float* values,
                                     float* sums);

/// sums[i] += weight * values[i]: the product is rounded to float32, and then the sum, on every
/// processor. Gives the first i where two finite numbers make a sum that is not, where it may stop,
/// or `count`.
[[nodiscard]] std::int64_t add_to_sum(std::int64_t count, float weight, const float* values,
                                      float* sums);

/// The first number that is infinite or NaN, or `count`.
[[nodiscard]] std::int64_t first_not_finite(std::int64_t count, const float* numbers);

}  // namespace shardwright

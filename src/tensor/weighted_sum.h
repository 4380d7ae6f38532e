// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace shardwright {

/// sums[i] = weight * values[i]: one rounding to float32.
void begin_sum(std::int64_t count, float weight, const float* values, float* sums);

/// sums[i] += weight * values[i]: the product is rounded to float32, and then the sum, on every
/// processor.
void add_to_sum(std::int64_t count, float weight, const float* values, float* sums);

}  // namespace shardwright

// SPDX-License-Identifier: Apache-2.0
#include "tensor/weighted_sum.h"

// This file is compiled with -ffp-contract=off, as low_rank.cc is.
namespace shardwright {

void begin_sum(std::int64_t count, float weight, const float* values, float* sums) {
  for (std::int64_t i = 0; i < count; ++i) sums[i] = weight * values[i];
}

void add_to_sum(std::int64_t count, float weight, const float* values, float* sums) {
  for (std::int64_t i = 0; i < count; ++i) {
    const float product = weight * values[i];
    sums[i] += product;
  }
}

}  // namespace shardwright

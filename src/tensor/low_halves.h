// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace shardwright {

/// Makes float32 numbers of what Transformer Engine's FusedAdam keeps of them
/// (store_param_remainders): `numbers` are bfloat16 weights, their upper halves rounded to nearest
/// (up where the lower half is 0x8000 or more), and `low` are the lower halves as 16-bit integers.
/// Gives the place of the first that is none, where it stops, or `count`.
/// Source: transformer_engine/common/multi_tensor/adam.cu.
[[nodiscard]] std::int64_t join_low_halves(std::int64_t count, const float* low, float* numbers);

}  // namespace shardwright

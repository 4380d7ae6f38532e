// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "shardwright/tensor.h"

namespace shardwright {

/// Whether stored values of this type can be multiplied with scales: e4m3, and fp4 in pairs.
[[nodiscard]] bool is_quantised(DType dtype);
/// Stored values in a byte: 2 for fp4 pairs.
[[nodiscard]] int values_per_byte(DType dtype);
/// Whether scales may have this type: f32, f16, bf16 and e8m0, which is a power of two.
[[nodiscard]] bool is_scale(DType dtype);
/// REQUIRES: is_scale(dtype).
[[nodiscard]] float load_scale(DType dtype, const std::byte* bytes);

/// Stored values that share a scale.
struct QuantisedRun {
  DType dtype = DType::kF8E4M3;
  const std::byte* bytes = nullptr;
  std::int64_t first = 0;   ///< value to start with, counted from `bytes` (the low half of a byte
                            ///< comes first)
  std::int64_t stride = 1;  ///< values from one to the next
  float scale = 1.0F;
};

/// target[i] = value i * scale, in float32. Infinities and NaNs are data. REQUIRES:
/// is_quantised(run.dtype).
void dequantise_run(const QuantisedRun& run, std::int64_t count, float* target);

}  // namespace shardwright

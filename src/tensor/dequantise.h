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
/// Whether unsigned integers of so many bits can be multiplied with scales: 2, 4 and 8.
[[nodiscard]] bool is_integer_width(int bits);
/// Whether scales may have this type: f32, f16, bf16, e4m3 and e8m0, which is a power of two.
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
  int bits = 0;  ///< not 0: values are unsigned integers of so many bits, whatever `dtype` says
  float zero = 0.0F;  ///< subtracted from such integers
};

/// Integer number `at` of those that follow each other from `bytes` on, the lowest bits of a byte
/// first. REQUIRES: is_integer_width(bits).
[[nodiscard]] inline std::uint32_t integer_at(const std::byte* bytes, std::int64_t at, int bits) {
  const std::int64_t bit = at * bits;
  return static_cast<std::uint32_t>(bytes[bit / 8]) >> (bit % 8) & ((1U << bits) - 1U);
}

/// target[i] = value i * scale, or (value i - zero) * scale of integers, in float32. Infinities and
/// NaNs are data. REQUIRES: is_quantised(run.dtype), or is_integer_width(run.bits).
void dequantise_run(const QuantisedRun& run, std::int64_t count, float* target);

}  // namespace shardwright

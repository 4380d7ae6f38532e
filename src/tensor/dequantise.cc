// SPDX-License-Identifier: Apache-2.0
#include "tensor/dequantise.h"

#include <array>
#include <bit>
#include <cmath>
#include <limits>

#include "tensor/convert.h"

namespace shardwright {
namespace {

// Sign, four bits of exponent (bias 7), three of mantissa; all ones are NaN, there is no infinity.
// Written with selections instead of branches, so that compilers make vectors of it. Subnormals
// come from a subtraction that is exact, because float32 subnormals are slow to multiply.
float f32_from_e4m3(std::uint8_t code) {
  constexpr std::uint32_t kRebias = 120U << 23;
  constexpr std::uint32_t kSmallest = 121U << 23;  // 2^-6, the smallest normal
  const std::uint32_t magnitude = code & 0x7fU;
  const std::uint32_t sign = (code & 0x80U) << 24;
  const float offset = std::bit_cast<float>(kSmallest + (magnitude << 20));
  const std::uint32_t subnormal =
      std::bit_cast<std::uint32_t>(offset - std::bit_cast<float>(kSmallest));
  const std::uint32_t finite = magnitude < 8 ? subnormal : kRebias + (magnitude << 20);
  const std::uint32_t bits = magnitude == 0x7fU ? 0x7fc00000U : finite;
  return std::bit_cast<float>(bits | sign);
}

// Sign, two bits of exponent, one of mantissa.
constexpr std::array<float, 16> kFp4 = {0.0F,  0.5F,  1.0F,  1.5F,  2.0F,  3.0F,  4.0F,  6.0F,
                                        -0.0F, -0.5F, -1.0F, -1.5F, -2.0F, -3.0F, -4.0F, -6.0F};

void dequantise_fp4(const QuantisedRun& run, std::int64_t count, float* target) {
  std::array<float, 16> products;
  for (std::size_t code = 0; code < products.size(); ++code) {
    products[code] = kFp4[code] * run.scale;
  }
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t at = run.first + i * run.stride;
    const auto pair = static_cast<std::uint8_t>(run.bytes[at / 2]);
    target[i] = products[at % 2 == 0 ? pair & 0x0fU : pair >> 4];
  }
}

}  // namespace

bool is_quantised(DType dtype) { return dtype == DType::kF8E4M3 || dtype == DType::kF4E2M1X2; }

int values_per_byte(DType dtype) { return dtype == DType::kF4E2M1X2 ? 2 : 1; }

bool is_scale(DType dtype) {
  return dtype == DType::kF32 || dtype == DType::kBF16 || dtype == DType::kF16 ||
         dtype == DType::kF8E8M0;
}

float load_scale(DType dtype, const std::byte* bytes) {
  if (dtype == DType::kF8E8M0) {
    const auto exponent = static_cast<std::uint8_t>(*bytes);
    if (exponent == 0xff) return std::numeric_limits<float>::quiet_NaN();
    return std::ldexp(1.0F, exponent - 127);
  }
  float scale = 0.0F;
  // Float32 holds them all: this cannot fail.
  (void)convert_run({dtype, DType::kF32, 0.0}, 1, bytes, 0, reinterpret_cast<std::byte*>(&scale),
                    sizeof scale);
  return scale;
}

void dequantise_run(const QuantisedRun& run, std::int64_t count, float* target) {
  if (run.dtype == DType::kF4E2M1X2) return dequantise_fp4(run, count, target);
  const std::byte* source = run.bytes + run.first;
  if (run.stride == 1) {
    for (std::int64_t i = 0; i < count; ++i) {
      target[i] = f32_from_e4m3(static_cast<std::uint8_t>(source[i])) * run.scale;
    }
    return;
  }
  for (std::int64_t i = 0; i < count; ++i) {
    target[i] = f32_from_e4m3(static_cast<std::uint8_t>(source[i * run.stride])) * run.scale;
  }
}

}  // namespace shardwright

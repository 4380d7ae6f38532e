// SPDX-License-Identifier: Apache-2.0
#include "tensor/dequantise.h"

#include <array>
#include <bit>
#include <limits>

#include "tensor/convert.h"

namespace shardwright {
namespace {

// Sign, four bits of exponent (bias 7), three of mantissa; all ones are NaN, there is no infinity.
constexpr float f32_from_e4m3(std::uint32_t code) {
  const std::uint32_t exponent = code >> 3 & 0xfU;
  const std::uint32_t mantissa = code & 7U;
  constexpr float kUnit = 1.0F / 512;  // of subnormals
  float magnitude = static_cast<float>(mantissa) * kUnit;
  if (exponent > 0) {
    magnitude = static_cast<float>(8 + mantissa) * static_cast<float>(1U << (exponent - 1)) * kUnit;
  }
  if ((code & 0x7fU) == 0x7fU) magnitude = std::numeric_limits<float>::quiet_NaN();
  return (code & 0x80U) != 0 ? -magnitude : magnitude;
}

// A table in the first cache is faster than what compilers make of the arithmetic.
constexpr std::array<float, 256> kE4m3 = [] {
  std::array<float, 256> values;
  for (std::uint32_t code = 0; code < 256; ++code) values[code] = f32_from_e4m3(code);
  return values;
}();

float value_of_e4m3(std::byte code) { return kE4m3[static_cast<std::uint8_t>(code)]; }

// Sign, two bits of exponent, one of mantissa.
constexpr std::array<float, 16> kFp4 = {0.0F,  0.5F,  1.0F,  1.5F,  2.0F,  3.0F,  4.0F,  6.0F,
                                        -0.0F, -0.5F, -1.0F, -1.5F, -2.0F, -3.0F, -4.0F, -6.0F};

float value_of_fp4(std::byte pair, bool is_high) {
  const std::uint8_t codes = static_cast<std::uint8_t>(pair);
  return kFp4[is_high ? codes >> 4 : codes & 0xf];
}

void dequantise_fp4(const QuantisedRun& run, std::int64_t count, float* target) {
  std::int64_t done = 0;
  if (run.stride == 1 && run.first % 2 == 0) {
    const std::byte* pairs = run.bytes + run.first / 2;
    for (; done + 1 < count; done += 2) {
      target[done] = value_of_fp4(pairs[done / 2], false) * run.scale;
      target[done + 1] = value_of_fp4(pairs[done / 2], true) * run.scale;
    }
  }
  for (; done < count; ++done) {
    const std::int64_t at = run.first + done * run.stride;
    target[done] = value_of_fp4(run.bytes[at / 2], at % 2 != 0) * run.scale;
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
    // 2^(exponent - 127); the least is subnormal.
    return std::bit_cast<float>(exponent == 0 ? 0x00400000U : std::uint32_t{exponent} << 23);
  }
  float scale = 0.0F;
  // Float32 holds them all: this cannot fail.
  [[maybe_unused]] const Status status = convert_run(
      {dtype, DType::kF32, 0.0}, 1, bytes, 0, reinterpret_cast<std::byte*>(&scale), sizeof scale);
  return scale;
}

void dequantise_run(const QuantisedRun& run, std::int64_t count, float* target) {
  if (run.dtype == DType::kF4E2M1X2) return dequantise_fp4(run, count, target);
  const std::byte* source = run.bytes + run.first;
  if (run.stride == 1) {
    for (std::int64_t i = 0; i < count; ++i) {
      target[i] = value_of_e4m3(source[i]) * run.scale;
    }
    return;
  }
  for (std::int64_t i = 0; i < count; ++i) {
    target[i] = value_of_e4m3(source[i * run.stride]) * run.scale;
  }
}

}  // namespace shardwright

// SPDX-License-Identifier: Apache-2.0
#include "tensor/dequantise.h"

#include <array>
#include <bit>
#include <limits>

#include "base/endian.h"
#include "shardwright/quantised.h"
#include "tensor/bfloat16.h"

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

// Differences of small integers are exact in float32: only the product is rounded.
void dequantise_integers(const QuantisedRun& run, std::int64_t count, float* target) {
  if (run.bits == 8 && run.stride == 1) {
    const std::byte* codes = run.bytes + run.first;
    for (std::int64_t i = 0; i < count; ++i) {
      target[i] = (static_cast<float>(static_cast<std::uint8_t>(codes[i])) - run.zero) * run.scale;
    }
    return;
  }
  std::int64_t done = 0;
  if (run.bits == 4 && run.stride == 1 && run.first % 2 == 0) {
    const std::byte* pairs = run.bytes + run.first / 2;
    for (; done + 1 < count; done += 2) {
      const auto pair = static_cast<std::uint8_t>(pairs[done / 2]);
      target[done] = (static_cast<float>(pair & 0xf) - run.zero) * run.scale;
      target[done + 1] = (static_cast<float>(pair >> 4) - run.zero) * run.scale;
    }
  }
  for (; done < count; ++done) {
    const std::uint32_t code = integer_at(run.bytes, run.first + done * run.stride, run.bits);
    target[done] = (static_cast<float>(code) - run.zero) * run.scale;
  }
}

float f32_from_f16(std::uint16_t bits) {
  const std::uint32_t sign = std::uint32_t{bits & 0x8000U} << 16;
  const std::uint32_t exponent = bits >> 10 & 0x1fU;
  const std::uint32_t mantissa = bits & 0x3ffU;
  if (exponent == 0) {
    const float magnitude = static_cast<float>(mantissa) * (1.0F / 16777216);
    return sign != 0 ? -magnitude : magnitude;
  }
  const std::uint32_t widened = exponent == 31 ? 255 : exponent + 112;  // of bias 127, not 15
  return std::bit_cast<float>(sign | widened << 23 | mantissa << 13);
}

}  // namespace

std::vector<std::uint32_t> companions_of(const QuantisedSource& quantised) {
  std::vector<std::uint32_t> companions = {quantised.scales};
  if (quantised.zeros) companions.push_back(quantised.zeros->tensor);
  if (quantised.second) companions.push_back(quantised.second->tensor);
  if (quantised.groups) companions.push_back(quantised.groups->tensor);
  return companions;
}

bool is_quantised(DType dtype) { return dtype == DType::kF8E4M3 || dtype == DType::kF4E2M1X2; }

int values_per_byte(DType dtype) { return dtype == DType::kF4E2M1X2 ? 2 : 1; }

bool is_integer_width(int bits) { return bits == 2 || bits == 4 || bits == 8; }

bool is_scale(DType dtype) {
  return dtype == DType::kF32 || dtype == DType::kBF16 || dtype == DType::kF16 ||
         dtype == DType::kF8E4M3 || dtype == DType::kF8E8M0;
}

float load_scale(DType dtype, const std::byte* bytes) {
  if (dtype == DType::kF8E8M0) {
    const auto exponent = static_cast<std::uint8_t>(*bytes);
    if (exponent == 0xff) return std::numeric_limits<float>::quiet_NaN();
    // 2^(exponent - 127); the least is subnormal.
    return std::bit_cast<float>(exponent == 0 ? 0x00400000U : std::uint32_t{exponent} << 23);
  }
  if (dtype == DType::kF8E4M3) return value_of_e4m3(*bytes);
  if (dtype == DType::kBF16) return f32_from_bf16(load_le<std::uint16_t>(bytes));
  if (dtype == DType::kF16) return f32_from_f16(load_le<std::uint16_t>(bytes));
  return std::bit_cast<float>(load_le<std::uint32_t>(bytes));
}

void dequantise_run(const QuantisedRun& run, std::int64_t count, float* target) {
  if (run.bits != 0) return dequantise_integers(run, count, target);
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

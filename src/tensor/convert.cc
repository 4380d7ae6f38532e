// SPDX-License-Identifier: Apache-2.0
#include "tensor/convert.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "base/fail.h"
#include "tensor/bfloat16.h"

namespace shardwright {
namespace {

template <class T>
T load(const std::byte* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

template <class T>
void store(std::byte* bytes, T value) {
  std::memcpy(bytes, &value, sizeof value);
}

// Doubles hold every f16, bf16 and f32 exactly, so one step through them rounds only once as long
// as the target is rounded from the double itself.
std::uint16_t bf16_from_f64(double value) {
  const float nearest = static_cast<float>(value);
  if (static_cast<double>(nearest) == value || std::isnan(value) || std::isinf(nearest)) {
    return bf16_from_f32(nearest);
  }
  // Rounding twice may turn a near-tie into a tie: rebuild f32 with round-to-odd first.
  float toward_zero = nearest;
  if (std::fabs(static_cast<double>(nearest)) > std::fabs(value)) {
    toward_zero = std::nextafter(nearest, 0.0F);
  }
  const std::uint32_t odd = std::bit_cast<std::uint32_t>(toward_zero) | 1U;
  return bf16_from_f32(std::bit_cast<float>(odd));
}

double f64_from_f16(std::uint16_t bits) {
  const bool negative = (bits & 0x8000U) != 0;
  const int exponent = (bits >> 10) & 0x1f;
  const int mantissa = bits & 0x3ff;
  double value = 0.0;
  if (exponent == 0x1f) {
    value = mantissa == 0 ? HUGE_VAL : std::nan("");
  } else if (exponent == 0) {
    value = std::ldexp(mantissa, -24);
  } else {
    value = std::ldexp(1024 + mantissa, exponent - 25);
  }
  return negative ? -value : value;
}

std::uint16_t f16_from_f64(double value) {
  const std::uint16_t sign = std::signbit(value) ? 0x8000U : 0U;
  const double magnitude = std::fabs(value);
  if (std::isnan(value)) return static_cast<std::uint16_t>(sign | 0x7e00U);
  if (std::isinf(value)) return static_cast<std::uint16_t>(sign | 0x7c00U);
  if (magnitude == 0.0) return sign;
  int exponent = 0;
  (void)std::frexp(magnitude, &exponent);  // magnitude = m * 2^exponent, m in [0.5, 1)
  // One unit in the last place of the result: 11 significant bits, never below 2^-24.
  const int unit = std::max(exponent - 11, -24);
  const double scaled = std::nearbyint(std::ldexp(magnitude, -unit));  // ties to even
  const double rounded = std::ldexp(scaled, unit);
  if (rounded >= 65520.0) return static_cast<std::uint16_t>(sign | 0x7c00U);
  if (rounded < std::ldexp(1.0, -14)) {
    return static_cast<std::uint16_t>(sign | static_cast<unsigned>(std::ldexp(rounded, 24)));
  }
  (void)std::frexp(rounded, &exponent);
  const unsigned mantissa = static_cast<unsigned>(std::ldexp(rounded, 11 - exponent)) - 1024U;
  return static_cast<std::uint16_t>(sign | (static_cast<unsigned>(exponent + 14) << 10) | mantissa);
}

double load_f64(DType dtype, const std::byte* bytes) {
  switch (dtype) {
    case DType::kF16:
      return f64_from_f16(load<std::uint16_t>(bytes));
    case DType::kBF16:
      return static_cast<double>(f32_from_bf16(load<std::uint16_t>(bytes)));
    case DType::kF32:
      return static_cast<double>(load<float>(bytes));
    default:  // kF64: is_supported() comes first
      return load<double>(bytes);
  }
}

// Stores the value rounded to nearest even; false when a finite value became infinite.
bool store_f64(DType dtype, double value, std::byte* bytes) {
  switch (dtype) {
    case DType::kF16: {
      const std::uint16_t bits = f16_from_f64(value);
      store(bytes, bits);
      return std::isinf(value) || (bits & 0x7fffU) != 0x7c00U;
    }
    case DType::kBF16: {
      const std::uint16_t bits = bf16_from_f64(value);
      store(bytes, bits);
      return std::isinf(value) || (bits & 0x7fffU) != 0x7f80U;
    }
    case DType::kF32: {
      const float narrow = static_cast<float>(value);
      store(bytes, narrow);
      return std::isinf(value) || !std::isinf(narrow);
    }
    default:  // kF64
      store(bytes, value);
      return true;
  }
}

// False when a finite value rounded to infinity.
bool narrow_to_bf16(std::int64_t count, const std::byte* source, std::byte* target) {
  bool overflow = false;
  for (std::int64_t i = 0; i < count; ++i) {
    const float value = load<float>(source + 4 * i);
    const std::uint16_t bits = bf16_from_f32(value);
    overflow |= (bits & 0x7fffU) == 0x7f80U &&
                (std::bit_cast<std::uint32_t>(value) & 0x7fffffffU) != 0x7f800000U;
    store(target + 2 * i, bits);
  }
  return !overflow;
}

// The two conversions that matter for speed, without the detour through double. False when the
// general loop has to run (also to find the value that does not fit).
bool convert_fast(const Conversion& conversion, std::int64_t count, const std::byte* source,
                  std::byte* target) {
  if (conversion.add != 0.0) return false;
  if (conversion.from == DType::kBF16 && conversion.to == DType::kF32) {
    for (std::int64_t i = 0; i < count; ++i) {
      store(target + 4 * i, f32_from_bf16(load<std::uint16_t>(source + 2 * i)));
    }
    return true;
  }
  if (conversion.from == DType::kF32 && conversion.to == DType::kBF16) {
    return narrow_to_bf16(count, source, target);
  }
  return false;
}

}  // namespace

bool is_supported(const Conversion& conversion) {
  if (conversion.is_identity()) return true;
  return is_castable_float(conversion.from) && is_castable_float(conversion.to);
}

Status convert_run(const Conversion& conversion, std::int64_t count, const std::byte* source,
                   std::int64_t source_stride, std::byte* target, std::int64_t target_stride) {
  if (conversion.is_identity()) {
    const int bytes = bytes_of(conversion.from);
    strided_copy({{count}, {target_stride}, {source_stride}}, bytes, source, target);
    return {};
  }
  // Values of other widths than the loops below know would be written behind the target.
  if (!is_supported(conversion)) {
    return fail(Code::kDtypeUnsupported, "found values of {}, which cannot be made {}",
                torch_name(conversion.from), torch_name(conversion.to));
  }
  const bool dense =
      source_stride == bytes_of(conversion.from) && target_stride == bytes_of(conversion.to);
  if (dense && convert_fast(conversion, count, source, target)) return {};
  for (std::int64_t i = 0; i < count; ++i) {
    double value = load_f64(conversion.from, source + i * source_stride);
    if (conversion.add != 0.0) value += conversion.add;  // -0.0 + 0.0 would lose the sign
    if (!store_f64(conversion.to, value, target + i * target_stride)) {
      return fail(Code::kValueOverflow, "value {} at element {} of the run does not fit {}", value,
                  i, torch_name(conversion.to));
    }
  }
  return {};
}

namespace {

Status convert_axes(const Conversion& conversion, const CopyLoops& loops, int axis,
                    const std::byte* source, std::byte* target) {
  if (loops.shape.empty()) return convert_run(conversion, 1, source, 0, target, 0);
  if (axis + 1 == loops.shape.size()) {
    return convert_run(conversion, loops.shape[axis], source, loops.source_strides[axis], target,
                       loops.target_strides[axis]);
  }
  for (std::int64_t i = 0; i < loops.shape[axis]; ++i) {
    SW_TRY(convert_axes(conversion, loops, axis + 1, source + i * loops.source_strides[axis],
                        target + i * loops.target_strides[axis]));
  }
  return {};
}

}  // namespace

Status convert_region(const Conversion& conversion, const CopyLoops& loops, const std::byte* source,
                      std::byte* target) {
  return convert_axes(conversion, collapse(loops), 0, source, target);
}

}  // namespace shardwright

// SPDX-License-Identifier: Apache-2.0
#include "tensor/values.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "tensor/convert.h"

namespace shardwright {
namespace {

// A type of eight bits with a sign, as torch has them.
struct SmallFloat {
  int mantissa_bits;
  int bias;
  bool has_infinity;       // all exponent bits set: infinity and NaNs, as in IEEE 754
  bool only_negative_nan;  // 0x80 is the NaN, there is no negative zero
};

double decode_small(const SmallFloat& format, unsigned bits) {
  const int mantissa_bits = format.mantissa_bits;
  const unsigned mantissa_mask = (1U << mantissa_bits) - 1U;
  const unsigned exponent_mask = 0x7fU >> mantissa_bits;
  const unsigned mantissa = bits & mantissa_mask;
  const unsigned exponent = (bits >> mantissa_bits) & exponent_mask;
  const double sign = (bits & 0x80U) != 0 ? -1.0 : 1.0;
  if (format.only_negative_nan && bits == 0x80U) return std::nan("");
  if (!format.only_negative_nan && exponent == exponent_mask) {
    if (format.has_infinity) return mantissa == 0 ? sign * HUGE_VAL : std::nan("");
    if (mantissa == mantissa_mask) return std::nan("");
  }
  if (exponent == 0) {
    return sign * std::ldexp(static_cast<double>(mantissa), 1 - format.bias - mantissa_bits);
  }
  const double significand = static_cast<double>(mantissa + (1U << mantissa_bits));
  return sign * std::ldexp(significand, static_cast<int>(exponent) - format.bias - mantissa_bits);
}

// A power of two without a sign.
double decode_e8m0(unsigned bits) {
  return bits == 0xffU ? std::nan("") : std::ldexp(1.0, static_cast<int>(bits) - 127);
}

template <class T>
void decode_integers(std::span<const std::byte> bytes, std::span<double> values) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    T value;
    std::memcpy(&value, bytes.data() + i * sizeof(T), sizeof(T));
    values[i] = static_cast<double>(value);
  }
}

// Not by way of a double, which has fewer digits.
template <class T>
std::string integer_text(std::span<const std::byte> element) {
  T value;
  std::memcpy(&value, element.data(), sizeof(T));
  return fmt::format("{}", value);
}

template <class Decode>
void decode_bytes(std::span<const std::byte> bytes, std::span<double> values,
                  const Decode& decode) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = decode(std::to_integer<unsigned>(bytes[i]));
  }
}

// To a wider type nothing can go wrong.
void decode_floats(DType dtype, std::span<const std::byte> bytes, std::span<double> values) {
  [[maybe_unused]] const Status status =
      convert_run({dtype, DType::kF64, 0.0}, static_cast<std::int64_t>(values.size()), bytes.data(),
                  bytes_of(dtype), reinterpret_cast<std::byte*>(values.data()), sizeof(double));
}

void decode_small_floats(DType dtype, std::span<const std::byte> bytes, std::span<double> values) {
  if (dtype == DType::kF8E8M0) return decode_bytes(bytes, values, decode_e8m0);
  SmallFloat format{3, 7, false, false};
  if (dtype == DType::kF8E5M2) format = {2, 15, true, false};
  if (dtype == DType::kF8E4M3Fnuz) format = {3, 8, false, true};
  if (dtype == DType::kF8E5M2Fnuz) format = {2, 16, false, true};
  decode_bytes(bytes, values, [&](unsigned bits) { return decode_small(format, bits); });
}

}  // namespace

int parts_of(DType dtype) {
  if (dtype == DType::kF4E2M1X2) return 0;
  const bool is_complex = dtype == DType::kC32 || dtype == DType::kC64 || dtype == DType::kC128;
  return is_complex ? 2 : 1;
}

void decode_values(DType dtype, std::span<const std::byte> bytes, std::span<double> values) {
  switch (dtype) {
    case DType::kBool:
    case DType::kU8:
      return decode_integers<std::uint8_t>(bytes, values);
    case DType::kI8:
      return decode_integers<std::int8_t>(bytes, values);
    case DType::kU16:
      return decode_integers<std::uint16_t>(bytes, values);
    case DType::kI16:
      return decode_integers<std::int16_t>(bytes, values);
    case DType::kU32:
      return decode_integers<std::uint32_t>(bytes, values);
    case DType::kI32:
      return decode_integers<std::int32_t>(bytes, values);
    case DType::kU64:
      return decode_integers<std::uint64_t>(bytes, values);
    case DType::kI64:
      return decode_integers<std::int64_t>(bytes, values);
    case DType::kC32:
      return decode_floats(DType::kF16, bytes, values);
    case DType::kC64:
      return decode_floats(DType::kF32, bytes, values);
    case DType::kC128:
      return decode_floats(DType::kF64, bytes, values);
    case DType::kF4E2M1X2:
      return;
    default:
      break;
  }
  return is_castable_float(dtype) ? decode_floats(dtype, bytes, values)
                                  : decode_small_floats(dtype, bytes, values);
}

std::string value_text(DType dtype, std::span<const std::byte> element) {
  if (dtype == DType::kI64) return integer_text<std::int64_t>(element);
  if (dtype == DType::kU64) return integer_text<std::uint64_t>(element);
  std::vector<double> parts(static_cast<std::size_t>(parts_of(dtype)));
  if (parts.empty()) return fmt::format("{:#04x}", std::to_integer<unsigned>(element[0]));
  decode_values(dtype, element, parts);
  for (double& part : parts) part = std::isnan(part) ? std::nan("") : part;  // without its sign
  if (parts.size() == 2) return fmt::format("{}{:+}i", parts[0], parts[1]);
  return fmt::format("{}", parts[0]);
}

}  // namespace shardwright

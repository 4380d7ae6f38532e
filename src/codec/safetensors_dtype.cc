// SPDX-License-Identifier: Apache-2.0
#include "codec/safetensors_dtype.h"

#include <array>

namespace shardwright {
namespace {

// In the order of the reference implementation's enumeration (0.8), which is its sort order; the
// F6 types in it have no counterpart in torch.
constexpr std::array<SafetensorsType, 20> kTypes = {{
    {"BOOL", DType::kBool, 0},
    {"F4", DType::kF4E2M1X2, 1, 2},
    {"U8", DType::kU8, 4},
    {"I8", DType::kI8, 5},
    {"F8_E5M2", DType::kF8E5M2, 6},
    {"F8_E4M3", DType::kF8E4M3, 7},
    {"F8_E8M0", DType::kF8E8M0, 8},
    {"F8_E4M3FNUZ", DType::kF8E4M3Fnuz, 9},
    {"F8_E5M2FNUZ", DType::kF8E5M2Fnuz, 10},
    {"I16", DType::kI16, 11},
    {"U16", DType::kU16, 12},
    {"F16", DType::kF16, 13},
    {"BF16", DType::kBF16, 14},
    {"I32", DType::kI32, 15},
    {"U32", DType::kU32, 16},
    {"F32", DType::kF32, 17},
    {"C64", DType::kC64, 18},
    {"F64", DType::kF64, 19},
    {"I64", DType::kI64, 20},
    {"U64", DType::kU64, 21},
}};

}  // namespace

std::optional<SafetensorsType> safetensors_type(std::string_view name) {
  for (const SafetensorsType& type : kTypes) {
    if (type.name == name) return type;
  }
  return std::nullopt;
}

std::optional<SafetensorsType> safetensors_type(DType dtype) {
  for (const SafetensorsType& type : kTypes) {
    if (type.dtype == dtype) return type;
  }
  return std::nullopt;
}

}  // namespace shardwright

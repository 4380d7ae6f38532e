// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "shardwright/tensor.h"

namespace shardwright {
namespace {

struct Row {
  std::string_view torch;
  std::string_view safetensors;
  int bits;
};

// In the order of DType. Empty safetensors names: the reference implementation has no such type.
constexpr std::array<Row, kDTypeCount> kRows = {{
    {"bool", "BOOL", 8},
    {"uint8", "U8", 8},
    {"int8", "I8", 8},
    {"uint16", "U16", 16},
    {"int16", "I16", 16},
    {"uint32", "U32", 32},
    {"int32", "I32", 32},
    {"uint64", "U64", 64},
    {"int64", "I64", 64},
    {"float16", "F16", 16},
    {"bfloat16", "BF16", 16},
    {"float32", "F32", 32},
    {"float64", "F64", 64},
    {"float8_e4m3fn", "F8_E4M3", 8},
    {"float8_e5m2", "F8_E5M2", 8},
    {"float8_e4m3fnuz", "F8_E4M3FNUZ", 8},
    {"float8_e5m2fnuz", "F8_E5M2FNUZ", 8},
    {"float8_e8m0fnu", "F8_E8M0", 8},
    {"float4_e2m1fn_x2", "", 8},
    {"complex32", "", 32},
    {"complex64", "C64", 64},
    {"complex128", "", 128},
}};

const Row& row(DType dtype) { return kRows[static_cast<std::size_t>(dtype)]; }

}  // namespace

int bits_of(DType dtype) { return row(dtype).bits; }
int bytes_of(DType dtype) { return row(dtype).bits / 8; }
std::string_view torch_name(DType dtype) { return row(dtype).torch; }
std::string_view safetensors_name(DType dtype) { return row(dtype).safetensors; }

std::optional<DType> dtype_from_torch(std::string_view name) {
  for (std::size_t i = 0; i < kRows.size(); ++i) {
    if (kRows[i].torch == name) return static_cast<DType>(i);
  }
  return std::nullopt;
}

std::optional<DType> dtype_from_safetensors(std::string_view name) {
  if (name.empty()) return std::nullopt;
  for (std::size_t i = 0; i < kRows.size(); ++i) {
    if (kRows[i].safetensors == name) return static_cast<DType>(i);
  }
  return std::nullopt;
}

bool is_integer(DType dtype) { return dtype <= DType::kI64; }

bool is_castable_float(DType dtype) {
  return dtype == DType::kF16 || dtype == DType::kBF16 || dtype == DType::kF32 ||
         dtype == DType::kF64;
}

}  // namespace shardwright

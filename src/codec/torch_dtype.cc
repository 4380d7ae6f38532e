// SPDX-License-Identifier: Apache-2.0
#include "codec/torch_dtype.h"

#include <array>

namespace shardwright {
namespace {

struct DtypeRow {
  DType dtype;
  std::string_view storage_class;
};

constexpr std::array<DtypeRow, 12> kRows = {{
    {DType::kBool, "BoolStorage"},
    {DType::kU8, "ByteStorage"},
    {DType::kI8, "CharStorage"},
    {DType::kI16, "ShortStorage"},
    {DType::kI32, "IntStorage"},
    {DType::kI64, "LongStorage"},
    {DType::kF16, "HalfStorage"},
    {DType::kBF16, "BFloat16Storage"},
    {DType::kF32, "FloatStorage"},
    {DType::kF64, "DoubleStorage"},
    {DType::kC64, "ComplexFloatStorage"},
    {DType::kC128, "ComplexDoubleStorage"},
}};

}  // namespace

std::string_view torch_storage_class(DType dtype) {
  for (const DtypeRow& row : kRows) {
    if (row.dtype == dtype) return row.storage_class;
  }
  return {};
}

std::optional<DType> dtype_of_storage_class(std::string_view name) {
  for (const DtypeRow& row : kRows) {
    if (row.storage_class == name) return row.dtype;
  }
  return std::nullopt;
}

}  // namespace shardwright

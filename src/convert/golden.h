// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

#include "shardwright/convert.h"

namespace shardwright {

/// A tensor's dtype, shape and row-major bytes, for comparisons.
struct TensorBytes {
  DType dtype = DType::kU8;
  Dims shape;
  std::string bytes;
};

using TensorMap = std::map<std::string, TensorBytes>;

/// Every tensor of a checkpoint of any format, assembled whole. For tests on small files.
[[nodiscard]] Result<TensorMap> read_all_tensors(const std::string& path);

/// Writes a folder with one safetensors file: bytes that differ from element to element and from
/// tensor to tensor, all of them small finite numbers; and a config.json, if that is not empty.
void put_model(const std::string& folder, const std::string& config,
               const std::vector<TensorDesc>& tensors);

/// What of `got` is not as in `expected`: names that are missing or too much, other dtypes, shapes
/// and bytes; empty where both are equal.
[[nodiscard]] std::string difference(const TensorMap& got, const TensorMap& expected);

/// prepare_conversion and run_conversion.
[[nodiscard]] Result<PreparedConversion> convert_now(const ConvertRequest& request);

}  // namespace shardwright

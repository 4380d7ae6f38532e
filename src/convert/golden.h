// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
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

/// Puts a byte at `at` of the bytes that `record` says of a file. Where a zip archive states their
/// CRC-32 it states the new one afterwards, so that the archive is sound.
void alter_sealed(const std::string& path, ByteRange record, std::uint64_t at, char byte);

/// Lets the `.metadata` of a folder say something else of the same files.
void edit_metadata(const std::string& folder, const std::function<void(Catalog&)>& edit);

/// prepare_conversion and run_conversion.
[[nodiscard]] Result<PreparedConversion> convert_now(const ConvertRequest& request);

}  // namespace shardwright

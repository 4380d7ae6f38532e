// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>

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

/// prepare_conversion and run_conversion.
[[nodiscard]] Result<PreparedConversion> convert_now(const ConvertRequest& request);

}  // namespace shardwright

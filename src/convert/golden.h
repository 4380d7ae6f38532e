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

/// A folder of tests/golden.
[[nodiscard]] std::string golden_path(const std::string& relative);

/// A fresh folder that is removed with all in it.
class TemporaryOutput {
 public:
  TemporaryOutput();
  ~TemporaryOutput();
  TemporaryOutput(const TemporaryOutput&) = delete;
  TemporaryOutput& operator=(const TemporaryOutput&) = delete;
  [[nodiscard]] std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

/// prepare_conversion and run_conversion.
[[nodiscard]] Result<PreparedConversion> convert_now(const ConvertRequest& request);

}  // namespace shardwright

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace shardwright {

/// What a golden file says of a tensor whose bytes it does not hold.
struct TensorRecord {
  std::string dtype;  ///< as safetensors names it
  std::vector<std::int64_t> shape;
  std::string digest;  ///< content_digest of the row-major bytes
  /// Of a tensor that may have more rows or fewer, as padding has it: how many `digest` is of.
  std::optional<std::int64_t> rows;
};

/// The tensors of a megatron_global.json by name.
[[nodiscard]] std::map<std::string, TensorRecord> read_tensor_records(const std::string& path);

/// XXH3 with 128 bits, as 32 hexadecimal digits.
[[nodiscard]] std::string content_digest(std::string_view bytes);

}  // namespace shardwright

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "shardwright/tensor.h"

namespace shardwright {

inline constexpr std::string_view kSourceKeysFile = "source_keys.json";

/// `hf/source_keys.json`: names, dtypes and shapes of the HF tensors that a Megatron checkpoint was
/// made from, in their order; quantised ones as what they were multiplied to. It tells an export
/// which optional tensors existed.
[[nodiscard]] std::string write_source_keys(std::span<const TensorDesc> hf);

/// Error: kJsonCorrupt.
[[nodiscard]] Result<std::vector<TensorDesc>> read_source_keys(std::string_view json);

}  // namespace shardwright

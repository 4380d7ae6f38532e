// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "shardwright/catalog.h"

namespace shardwright {

/// `hf/source_keys.json`: names, dtypes and shapes of the HF tensors that a Megatron checkpoint was
/// made from, in their order. It tells an export which optional tensors existed.
[[nodiscard]] std::string write_source_keys(const Catalog& catalog);

/// Error: kJsonCorrupt.
[[nodiscard]] Result<std::vector<TensorDesc>> read_source_keys(std::string_view json);

}  // namespace shardwright

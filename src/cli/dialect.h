// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <vector>

namespace shardwright::cli {

/// Rewrites the spellings that other tools use for parallel sizes to the canonical flags `--tp`,
/// `--pp`, `--vpp`, `--ep` and `--etp`: `-tp`, `--tensor-model-parallel-size`,
/// `--target-tensor-parallel-size`, `--tensor_model_parallel_size` and so on, with the value behind
/// `=` or in the next argument. In every other long flag `_` becomes `-`. Values are not changed,
/// nor is anything after `--`.
[[nodiscard]] std::vector<std::string> to_canonical_flags(std::span<const std::string> arguments);

}  // namespace shardwright::cli

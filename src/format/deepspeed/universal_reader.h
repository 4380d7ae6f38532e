// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "shardwright/checkpoint.h"

namespace shardwright {

/// The folder of a universal checkpoint that has a folder for each parameter.
inline constexpr std::string_view kUniversalFolder = "zero";
/// The file there that holds the parameter itself, less its ending.
inline constexpr std::string_view kUniversalWeights = "fp32";
inline constexpr std::string_view kUniversalEnding = ".pt";

/// Fills in the catalog of a universal checkpoint: `zero/NAME/fp32.pt` as the tensor NAME, the
/// other states beside it as `optimizer.state.KIND.NAME`, and what the copied model states have
/// besides. Errors: kZeroLayout for parameters whose folder is missing or holds another shape;
/// those of reading.
[[nodiscard]] Status read_universal(Checkpoint& checkpoint, Defects& defects);

}  // namespace shardwright

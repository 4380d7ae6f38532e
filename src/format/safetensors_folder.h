// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "format/target_parts.h"
#include "shardwright/plan.h"

namespace shardwright {

/// Lays safetensors files and their index out in TargetParts::folder, with `artifacts` and `files`
/// beside them, behind what the plan's target has already. Errors: those of layout_hf.
[[nodiscard]] Status plan_safetensors(TargetParts& parts, std::uint64_t max_shard_bytes,
                                      Plan& plan);

}  // namespace shardwright

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "format/target_format.h"

namespace shardwright {

[[nodiscard]] const Target& safetensors_target();

/// Adds safetensors files with these tensors, and their index, in a folder of the target; `folder`
/// ends with a slash or is empty. Errors: those of layout_hf.
[[nodiscard]] Status add_safetensors_folder(const std::string& folder,
                                            std::vector<DraftTensor> tensors,
                                            std::uint64_t max_shard_bytes, std::string_view stem,
                                            Plan& plan);

/// Lays safetensors files out, with `artifacts` and `files` beside them.
[[nodiscard]] Status plan_safetensors(TargetParts& parts, std::uint64_t max_shard_bytes,
                                      Plan& plan);

}  // namespace shardwright

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "shardwright/checkpoint.h"

namespace shardwright {

inline constexpr std::string_view kLoraTrainMetaFile = "lora_train_meta.json";

/// What verl says of a LoRA run beside the files of its ranks.
struct LoraTrainMeta {
  std::int64_t rank = 0;
  ArgValue alpha;         ///< a number, not 0
  std::string task_type;  ///< may be empty
};

/// Reads a folder's lora_train_meta.json; nullopt where there is none. Errors: those of reading;
/// kJsonCorrupt for what verl does not write there; kConfigMissing without r or lora_alpha;
/// kUnsupportedFormat for a lora_alpha of 0.
[[nodiscard]] Result<std::optional<LoraTrainMeta>> read_lora_train_meta(const Directory& folder);

}  // namespace shardwright

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "format/target_format.h"

namespace shardwright {

/// A Hugging Face model: safetensors files in transformers' names, config.json beside them.
[[nodiscard]] const Target& hf_target();

}  // namespace shardwright

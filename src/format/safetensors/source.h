// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "format/source_format.h"

namespace shardwright {

/// Tensors in safetensors files under any names: what a target that keeps the source's names
/// writes, and Hugging Face's files without the config.json that would say which model they are.
[[nodiscard]] const SourceFormat& safetensors_source();

}  // namespace shardwright

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "format/source_format.h"

namespace shardwright {

/// Hugging Face models in safetensors files, with or without an index.
[[nodiscard]] const SourceFormat& hf_source();

}  // namespace shardwright

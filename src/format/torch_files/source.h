// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "format/source_format.h"

namespace shardwright {

/// State dicts of Hugging Face models in torch.save files: `pytorch_model*.bin`, with or without an
/// index, or any such file given by itself.
[[nodiscard]] const SourceFormat& torch_files_source();

}  // namespace shardwright

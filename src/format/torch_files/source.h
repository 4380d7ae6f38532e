// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "format/source_format.h"

namespace shardwright {

/// State dicts of Hugging Face models in torch.save files: `pytorch_model*.bin`, or
/// `diffusion_pytorch_model*.bin` of diffusers, with or without an index, or any such file given
/// by itself.
[[nodiscard]] const SourceFormat& torch_files_source();

}  // namespace shardwright

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "format/source_format.h"

namespace shardwright {

/// What DeepSpeed writes: folders of ZeRO 1, 2 and 3, and model states alone.
[[nodiscard]] const SourceFormat& deepspeed_zero_source();

/// Universal checkpoints, which have a folder for each parameter.
[[nodiscard]] const SourceFormat& deepspeed_universal_source();

/// Megatron-DeepSpeed's pipelines, which have a file for each layer and tensor-parallel rank.
[[nodiscard]] const SourceFormat& deepspeed_pipe_source();

}  // namespace shardwright

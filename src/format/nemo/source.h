// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "format/source_format.h"

namespace shardwright {

/// NeMo 1's checkpoints: a `.nemo` file, or a folder that one was unpacked into.
[[nodiscard]] const SourceFormat& nemo1_source();

/// NeMo 2's: Megatron-Core's torch_dist in `weights`, whose names begin with `module.`, beside
/// `context`, which has the model's configuration and its tokenizer.
[[nodiscard]] const SourceFormat& nemo2_source();

}  // namespace shardwright

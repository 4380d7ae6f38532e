// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "shardwright/checkpoint.h"

namespace shardwright {

/// Finds the config.json of a model whose trainer saved only weights, and takes along what
/// describes the model beside it (the tokenizer): in the folder itself, in `huggingface`,
/// `hf_assets`, `.hf_metadata` or `consolidated` in it, or in the same places of the two folders
/// above it (`checkpoint-500/config.json`, `checkpoint-500/global_step500`). A note says which was
/// taken where it is not the folder's own. Does nothing where a config is known already. Errors:
/// those of reading a config.json that is there.
[[nodiscard]] Status read_near_config(Checkpoint& checkpoint, Defects& defects);

/// The same, in the folder itself and in those places in it.
[[nodiscard]] Status read_config_within(Checkpoint& checkpoint, Defects& defects);

}  // namespace shardwright

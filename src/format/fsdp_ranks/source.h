// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "format/source_format.h"

namespace shardwright {

/// The state dicts that each rank of FSDP pickled for itself, as verl and SkyRL do it:
/// `model_world_size_N_rank_R.pt`, with config and tokenizer in `huggingface/`.
[[nodiscard]] const SourceFormat& fsdp_ranks_source();

}  // namespace shardwright

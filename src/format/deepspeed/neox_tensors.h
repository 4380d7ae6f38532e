// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "format/deepspeed/layer_tensor.h"
#include "shardwright/checkpoint.h"

namespace shardwright {

/// Refuses what no rule makes Megatron's of the tensors that a tensor-parallel rank of a GPT-NeoX
/// run has, by Megatron-Core's names: biases that ranks add up, and queries, keys and values one
/// behind another. `checkpoint` has the run's arguments and files, `tensor_ranks` is how many ranks
/// there are. Errors: kUnsupportedFormat; those of reading. Sources: ParallelTransformerLayer in
/// megatron/model/transformer.py and tools/ckpts/convert_neox_to_hf.py of GPT-NeoX.
[[nodiscard]] Status check_neox_tensors(const LayerTensors& tensors, const Checkpoint& checkpoint,
                                        std::int64_t tensor_ranks);

}  // namespace shardwright

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "shardwright/checkpoint.h"

namespace shardwright {

/// Fills in the catalog of a folder with a file for each layer and tensor-parallel rank
/// (`layer_03-model_01-model_states.pt`), which Megatron-DeepSpeed writes: Megatron's canonical
/// tensors, and the run's arguments. Which file is which layer follows from what it holds: those
/// with attention are numbered in order. Errors: kZeroLayout for files that are missing or hold
/// what no layer of such a model does; those of reading and of legacy_parts.
[[nodiscard]] Status read_pipe(Checkpoint& checkpoint, Defects& defects);

}  // namespace shardwright

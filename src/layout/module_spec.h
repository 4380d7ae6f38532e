// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "shardwright/parallel.h"
#include "shardwright/tensor.h"

namespace shardwright {

/// The names that tensors have in a model of the given layer spec. Transformer Engine fuses norms
/// into the linear behind them; Megatron-Core's local modules keep them apart, and their
/// sharded_state_dict_keys_map renames them (megatron/core/models/gpt/gpt_layer_specs.py), but for
/// those of a tower's layers (VisionLayers). Parallel to `tensors`; kKeep gives them back
/// unchanged.
[[nodiscard]] std::vector<TensorDesc> names_in_spec(std::span<const TensorDesc> tensors,
                                                    ModuleSpec spec);

}  // namespace shardwright

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <vector>

#include "shardwright/parallel.h"
#include "shardwright/tensor.h"

namespace shardwright {

/// The `_extra_state` entries that a model asks for when it is loaded from torch_dist: one per
/// linear, and for Transformer Engine also per norm, for each layer and expert. `tensors` are
/// stored tensors (stacked or numbered). Names are FQNs with their `/shard_...` part, each once.
/// Source: the modules' sharded_state_dict in megatron/core/extensions/transformer_engine.py.
[[nodiscard]] std::vector<std::string> extra_state_names(std::span<const TensorDesc> tensors,
                                                         ModuleSpec spec);

}  // namespace shardwright

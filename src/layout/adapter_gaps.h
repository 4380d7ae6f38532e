// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <vector>

#include "shardwright/tensor.h"

namespace shardwright {

/// Modules of a Megatron run's layers that have no adapter where most of the layers that have all
/// else adapted have one there too: no loss for certain, for a run may choose layers. A sentence's
/// part for each module: `self_attention.linear_qkv of layers 1, 3`. Stacked names have all layers.
[[nodiscard]] std::vector<std::string> adapter_gaps(std::span<const TensorDesc> tensors);

}  // namespace shardwright

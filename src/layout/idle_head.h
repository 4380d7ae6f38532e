// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "shardwright/tensor.h"

namespace shardwright {

/// Whether the `output_layer.weight` of one state dict of a tied model in several pipeline stages
/// is a parameter that nothing uses: where layers for multi-token prediction bring a word embedding
/// to the last stage, the model multiplies with that, and only weight decay moves its own output
/// layer. Source: shared_embedding_or_output_weight in megatron/core/models/gpt/gpt_model.py.
[[nodiscard]] bool has_idle_head(std::span<const TensorDesc> tensors);

}  // namespace shardwright

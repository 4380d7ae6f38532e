// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "canonical/model_facts.h"
#include "plan/draft.h"

namespace shardwright {

/// Whether torch_dist numbers a model's layers or stacks them. Megatron numbers those of a model
/// whose arguments list each layer's kind, or alternate kinds, even if they are all alike; and
/// those of every hybrid model.
[[nodiscard]] LayerKeys layer_keys_of(const Arguments& arguments);

/// The same of a Hugging Face model, by the arguments that it would have.
[[nodiscard]] LayerKeys layer_keys_of(const ModelFacts& facts);

}  // namespace shardwright

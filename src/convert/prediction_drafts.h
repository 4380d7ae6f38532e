// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "canonical/model_facts.h"
#include "convert/drafting.h"

namespace shardwright {

/// Takes prediction layers out of a Megatron source where they are to go. Error: kUsage for a
/// Hugging Face model that keeps its names.
[[nodiscard]] Status drop_prediction_layers(Drafting& drafting);

/// The same of a Hugging Face model: what its family makes such layers of.
[[nodiscard]] Status drop_prediction_layers_of_hf(const ModelFacts& facts, Drafting& drafting);

/// The source's tensors, and its config.json, become those of a model that has the layers of
/// `mtp_from`. Errors: those of open_prediction_source; kUsage for layers of its own.
[[nodiscard]] Status take_prediction_layers_into_hf(const ModelFacts& facts, Drafting& drafting);

/// Adds them to what a Megatron source becomes.
[[nodiscard]] Status take_prediction_layers_to_hf(ModelFacts& facts, Drafting& drafting);

}  // namespace shardwright

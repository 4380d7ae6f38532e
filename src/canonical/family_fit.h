// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "canonical/model_facts.h"

namespace shardwright {

/// Whether a Megatron checkpoint's canonical tensors make the model of its family that a conversion
/// to Hugging Face would write: none is missing, unknown or of another shape. Reads no payload.
/// Errors: those of wanted_keys, flat_convolutions and correspond_from_megatron.
[[nodiscard]] Status check_family_fit(const ModelFacts& facts, const Checkpoint& source,
                                      std::vector<TensorDesc> canonical);

}  // namespace shardwright

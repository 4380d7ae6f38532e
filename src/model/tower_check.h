// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "model/argument_check.h"
#include "model/config.h"
#include "shardwright/tensor.h"

namespace shardwright {

/// What config.json says of a multimodal model's towers (its sections `vision_config` and
/// `audio_config`, also those of a `thinker_config`) and their tensors contradict: how many layers
/// they have, and widths that no axis of theirs has. No family is needed for that. A section of
/// which there are no layers says nothing: what stands there may be a projector alone. `hf`: as for
/// contradicted_config(). Pure.
[[nodiscard]] std::vector<Contradiction> contradicted_towers(const HfConfig& config,
                                                             std::span<const TensorDesc> hf);

}  // namespace shardwright

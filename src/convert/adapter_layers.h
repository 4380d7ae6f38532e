// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "format/peft/adapter.h"
#include "shardwright/tensor.h"

namespace shardwright {

/// What to note where an adapter leaves modules of some layers as they are and changes the same of
/// others, though its config chooses no layers: a trainer may have saved one pipeline stage's only.
/// Empty where there is nothing to say. `base`: the tensors of the base model, by Hugging Face's
/// names; those of numbers from `layers` on are no layers that are adapted.
[[nodiscard]] std::string note_on_layers(const PeftAdapter& adapter,
                                         std::span<const TensorDesc> base,
                                         std::optional<std::int64_t> layers);

}  // namespace shardwright

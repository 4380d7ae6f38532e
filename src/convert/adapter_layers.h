// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "shardwright/tensor.h"

namespace shardwright {

/// The layers that lack one of an adapter's `modules` though others have it, and though the base
/// model has such a module there: a trainer may have saved one pipeline stage's only. `base`: the
/// tensors of the base model, by Hugging Face's names; those of numbers from `layers` on are no
/// layers that are adapted. In order.
[[nodiscard]] std::vector<std::int64_t> layers_without(std::span<const std::string> modules,
                                                       std::span<const TensorDesc> base,
                                                       std::optional<std::int64_t> layers);

}  // namespace shardwright

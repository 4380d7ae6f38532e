// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "layout/lost_parts.h"

namespace shardwright {

/// The embedding of a model that has the norm behind its layers, or that norm where the embedding
/// is there, and what layers of one stack lack that others of theirs have: the norm in front of an
/// attention or MLP, shared experts. Of canonical tensors, those of adapters left out.
[[nodiscard]] std::vector<LostPart> lost_tensors(std::span<const TensorDesc> tensors);

}  // namespace shardwright

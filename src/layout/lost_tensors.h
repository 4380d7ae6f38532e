// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "layout/lost_parts.h"

namespace shardwright {

/// The embedding of a model that has the norm behind its layers, or that norm where the embedding
/// is there; routers where experts are; and what a layer lacks that another one of its kind has:
/// the norm in front of an attention or MLP, shared experts. Of canonical tensors; those of
/// adapters are not looked at.
[[nodiscard]] std::vector<LostPart> lost_tensors(std::span<const TensorDesc> tensors);

}  // namespace shardwright

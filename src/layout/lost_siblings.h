// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>
#include <span>
#include <string>

#include "shardwright/tensor.h"

namespace shardwright {

/// What a numbered layer of any kind (`blocks.7.`, `encoder.layers.7.`) lacks, one module's
/// tensors, while most of the layers that have all else have that too. Nothing says what the layers
/// of a tower should have that is taken over as it is, but its other layers do. Whole names.
[[nodiscard]] std::set<std::string> lost_siblings(std::span<const TensorDesc* const> tensors);

/// The weights of modules of which only the bias is there. Whole names.
[[nodiscard]] std::set<std::string> lost_weights(std::span<const TensorDesc* const> tensors);

}  // namespace shardwright

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "shardwright/error.h"
#include "shardwright/tensor.h"

namespace shardwright {

/// Refuses names and shapes that claim more layers, or more pieces once every layer and expert
/// stands alone, than any model has: what comes after makes a list entry of each. To be called
/// before tensors from a file are placed or taken apart. Error: kLimit.
[[nodiscard]] Status check_piece_count(std::span<const TensorDesc> tensors);

}  // namespace shardwright

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <vector>

#include "shardwright/tensor.h"

namespace shardwright {

/// Sentences about layers that alone lack one or two tensors of a module of which other layers of
/// their stack have all the same: nothing proves that they were lost, as families exist in which
/// one layer is otherwise, so that whoever knows the model's family asks that instead. `tensors`: a
/// Megatron model's, one for each layer.
[[nodiscard]] std::vector<std::string> uneven_modules(std::span<const TensorDesc> tensors);

}  // namespace shardwright

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "model/mapping_file.h"
#include "shardwright/tensor.h"

namespace shardwright {

/// The tensors among a Megatron model's that the family knows as weights of convolutions (at least
/// three axes) and that are here weights of linears: the same elements in the same order, as rows.
/// Each with the shape that the family states. Patch embeddings are saved in both ways. Errors:
/// those of SizeExpr::evaluate, kDuplicateName.
[[nodiscard]] Result<std::vector<TensorDesc>> flat_convolutions(
    const Mapping& mapping, const ModelSizes& sizes, std::span<const TensorDesc> canonical);

}  // namespace shardwright

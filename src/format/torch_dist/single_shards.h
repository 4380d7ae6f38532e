// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "shardwright/catalog.h"

namespace shardwright {

/// Puts together what Megatron-Core's `singleton_local_shards` stores apart, as ModelOpt asks it
/// to: the halves of a gated linear_fc1 (`weight_w`, `weight_v`), and experts by their numbers
/// (`mlp.experts.experts.3.linear_fc2.weight`), optimizer states alike. The tensors are then those
/// that torch_dist has otherwise, each layer apart. Whether there were any. Errors:
/// kUnmatchedSource for pieces that are missing or not alike, kDuplicateName; the catalog then
/// stays as it is. Source: megatron/core/transformer/mlp.py and moe/experts.py.
[[nodiscard]] Result<bool> join_single_shards(Catalog& catalog);

}  // namespace shardwright

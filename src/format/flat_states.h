// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "shardwright/checkpoint.h"

namespace shardwright {

/// Whether a torch_dist catalog's optimizer states are not tensors of the model's shapes: flat
/// buckets of ranks (`dp_reshardable`), a pickled state for each rank (`dp_zero_gather_scatter`),
/// or cells with one flat axis (`fully_sharded_model_space` of Megatron-Core 0.15 and before).
[[nodiscard]] bool has_flat_states(const Catalog& catalog);

/// Makes of them the states that `fully_reshardable` has, under the names and in the shapes of the
/// model's tensors, in `catalog`, which is what is wanted of `source`; and describes them so in the
/// source's common state. Which parameter is where in a bucket follows from the order of Megatron's
/// modules and the sizes that are stored; it is proven when master weights are compared with
/// weights. REQUIRES: payloads are located. Errors: kOptimizerUnsupported with what does not fit.
[[nodiscard]] Status undo_flat_states(Checkpoint& source, Catalog& catalog);

}  // namespace shardwright

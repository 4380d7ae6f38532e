// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "shardwright/catalog.h"

namespace shardwright {

/// Whether the tensors are those that MLite's `dist_opt` saves by Megatron-Core: grouped experts
/// under names that begin with the model's part, `layers.0.`, or with its chunk, `model_pp1.` or
/// `model_pp1_vpp0.`. Source: distckpt.py of Megatron-Core's experimental/lite.
[[nodiscard]] bool has_dist_opt_names(const Catalog& catalog);

/// Gives tensors, and the parameters in the names of states, the names that MLite's other
/// checkpoints have: `model.` without stages, else `model_pp2.` by the number of the virtual stage,
/// as Megatron-Core counts them.
void name_as_mlite(Catalog& catalog);

}  // namespace shardwright

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "shardwright/checkpoint.h"

namespace shardwright {

/// Whether a catalog has a distributed optimizer's flat buffers: a tensor for each bucket, or a
/// pickled state for each rank.
[[nodiscard]] bool has_buckets(const Catalog& catalog);

/// Takes them apart: see undo_flat_states.
[[nodiscard]] Status undo_buckets(const Checkpoint& source, Catalog& catalog);

}  // namespace shardwright

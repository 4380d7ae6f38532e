// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "layout/lost_parts.h"
#include "shardwright/catalog.h"

namespace shardwright {

/// The layers of towers of which a run of `tensor` tensor ranks stored one rank's shards as if they
/// were all: where the language model's tensors are stored in as many pieces, a tower's
/// `linear_proj.weight` is one, and has that part of the columns which makes its layer's width.
/// MimoModel of Megatron-Core 0.16 saves so what it has no sharding for. A tower that each rank has
/// whole has all of them.
[[nodiscard]] std::vector<LostPart> unsaved_shards(const Catalog& catalog, std::int64_t tensor);

}  // namespace shardwright

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "shardwright/catalog.h"

namespace shardwright {

/// A catalog in which layers that have a tensor each (`decoder.layers.7.x`) are a tensor together,
/// the first axis of which counts them (`decoder.layers.x`), as torch_dist stores layers that are
/// alike: so can one layer's pieces be held against another's. Layers of another shape or dtype are
/// a tensor of their own. nullopt where no two layers are to be put together.
[[nodiscard]] std::optional<Catalog> stack_layers(const Catalog& catalog);

}  // namespace shardwright

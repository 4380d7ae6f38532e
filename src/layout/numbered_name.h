// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <vector>

#include "layout/layer_name.h"

namespace shardwright {

/// A name split at each number between its dots, from the front, whatever the modules around it are
/// called: `tower.blocks.7.mlp.0.weight` is in the stacks `tower.blocks` and `tower.blocks.7.mlp`.
/// Borrows `name`.
[[nodiscard]] std::vector<LayerName> split_at_numbers(std::string_view name);

}  // namespace shardwright

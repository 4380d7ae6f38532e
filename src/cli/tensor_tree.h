// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "shardwright/catalog.h"

namespace shardwright::cli {

/// The modules of a model as an indented table: tensors and bytes of each, dtype and shape of a
/// tensor. Numbered modules that stand side by side and are alike, name for name and shape for
/// shape, are one: `{0..31}`. `depth`: levels that are shown, 0 for all.
[[nodiscard]] std::string tensor_tree_text(const Catalog& catalog,
                                           const std::vector<std::size_t>& tensors,
                                           std::int64_t depth);

}  // namespace shardwright::cli

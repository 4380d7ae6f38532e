// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "shardwright/catalog.h"
#include "shardwright/convert.h"

namespace shardwright {

/// Whether a conversion takes optimizer tensors along.
[[nodiscard]] bool keeps_optimizer(const ConvertRequest& request);

/// The part of a catalog that a request asks for: tensors that pass include and exclude (a pattern
/// that matches nothing is kUsage with its text), without optimizer entries unless they are kept.
/// Optimizer states that the target has no place for are kOptimizerUnsupported when they are asked
/// for. What was left out is told in `notes`.
[[nodiscard]] Result<Catalog> select_entries(const Catalog& catalog, const ConvertRequest& request,
                                             std::vector<std::string>& notes);

}  // namespace shardwright

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <vector>

#include "shardwright/catalog.h"
#include "shardwright/convert_request.h"

namespace shardwright {

/// Whether a conversion takes optimizer tensors along.
[[nodiscard]] bool keeps_optimizer(const ConvertRequest& request);

/// Fails (kUsage, with its text) for a pattern of include or exclude that matches nothing in any of
/// the catalogs.
[[nodiscard]] Status check_patterns(std::span<const Catalog* const> catalogs,
                                    const ConvertRequest& request);

/// The part of a catalog that a request asks for: tensors that pass include and exclude, without
/// optimizer entries unless they are kept. Optimizer states that the target has no place for are
/// kOptimizerUnsupported when they are asked for. What was left out is told in `notes`.
[[nodiscard]] Result<Catalog> select_entries(const Catalog& catalog, const ConvertRequest& request,
                                             std::vector<std::string>& notes);

}  // namespace shardwright

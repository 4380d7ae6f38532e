// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "layout/name_placement.h"
#include "shardwright/error.h"

namespace shardwright {

/// Reads a family's placement rules (models/placements/*.json):
///
///     {"family": "…", "experts": PATTERN, "rules": [{"contains": ["fc1"], "experts": true,
///      "shard": {"ep": 0, "etp": 0}}, …]}
///
/// A pattern has `contains` (all of them), `any_of`, `without` and `starts_with`. `shard` says
/// which tensor axis each mesh axis cuts: `tp` for dense parameters, `ep` and `etp` for experts;
/// without it the parameter is replicated. Error: kMappingInvalid, with the place in the file.
[[nodiscard]] Result<PlacementRules> parse_placement_rules(std::string_view json,
                                                           std::string_view file_name);

}  // namespace shardwright

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "layout/name_placement.h"
#include "shardwright/error.h"

namespace shardwright {

/// The families that have placement rules, sorted.
[[nodiscard]] std::vector<std::string> placement_families();

/// A family's placement rules as built in. Error: kNoFamily, with the families that there are and
/// the nearest one.
[[nodiscard]] Result<PlacementRules> placement_rules_of(std::string_view family);

}  // namespace shardwright

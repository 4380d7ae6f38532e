// SPDX-License-Identifier: Apache-2.0
#include "canonical/placement_families.h"

#include <fmt/ranges.h>

#include "base/edit_distance.h"
#include "base/fail.h"
#include "model/built_in_models.h"
#include "model/placement_file.h"

namespace shardwright {
namespace {

// The file of a family has its name.
std::string_view stem_of(std::string_view file) { return file.substr(0, file.find('.')); }

}  // namespace

std::vector<std::string> placement_families() {
  std::vector<std::string> families;
  for (const MappingText& text : built_in_placements()) families.emplace_back(stem_of(text.name));
  return families;
}

Result<PlacementRules> placement_rules_of(std::string_view family) {
  for (const MappingText& text : built_in_placements()) {
    if (stem_of(text.name) == family) return parse_placement_rules(text.json, text.name);
  }
  const std::vector<std::string> families = placement_families();
  const std::string_view nearest = nearest_of(family, families);
  return fail(Code::kNoFamily, "placements: there are no rules for family {}; there are for {}{}",
              family, fmt::join(families, ", "),
              nearest.empty() ? "" : translated("; did you mean {}?", nearest));
}

}  // namespace shardwright

// SPDX-License-Identifier: Apache-2.0
#include "format/target_format.h"

#include "format/stored_drafts.h"

namespace shardwright {

Status Target::settle_sizes(ConvertRequest& /*request*/, TargetParts& /*parts*/) const {
  return {};
}

Status Target::draft_stored(const ConvertRequest& request, const Checkpoint& source,
                            Catalog& catalog, TargetParts& parts,
                            std::vector<std::string>& notes) const {
  SW_TRY(draft_stored_tensors(request, catalog, parts, notes));
  tell_what_stays(source, catalog, notes);
  return {};
}

Status Target::take_family(const Mapping& /*family*/, TargetParts& /*parts*/) const { return {}; }

void Target::add_prefix(std::string_view /*prefix*/, TargetParts& /*parts*/) const {}

Status Target::check_tensors(const std::string& /*family*/, const TargetParts& /*parts*/) const {
  return {};
}

Status Target::make_entries(const ConvertRequest& /*request*/, TargetParts& /*parts*/,
                            std::vector<std::string>& /*notes*/) const {
  return {};
}

std::vector<ComponentRanks> Target::components(const TargetParts& /*parts*/) const { return {}; }

}  // namespace shardwright

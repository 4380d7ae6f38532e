// SPDX-License-Identifier: Apache-2.0
#include "format/stored_drafts.h"

#include <algorithm>

#include "format/mlite/mlite_source.h"
#include "plan/canonical.h"
#include "plan/draft.h"
#include "state/document_names.h"

namespace shardwright {

Status draft_stored_tensors(const ConvertRequest& request, Catalog& catalog, TargetParts& parts,
                            std::vector<std::string>& notes) {
  if (has_mlite_names(catalog)) catalog = SW_TRY(global_from_mlite(catalog, request, notes));
  parts.tensors = draft_identity(catalog, {request.dtype, LayerKeys::kAutomatic});
  return {};
}

void tell_what_stays(const Checkpoint& source, const Catalog& catalog,
                     std::vector<std::string>& notes) {
  if (!source.common_state.empty() && source.directory->exists(kCommonStateFile)) {
    notes.emplace_back("common.pt (arguments, iteration, optimizer groups) stays behind");
  }
  const bool has_states = std::ranges::any_of(catalog.tensors, [](const StoredTensor& tensor) {
    return is_optimizer_name(tensor.desc.name);
  });
  if (has_states && !source.beside_states.empty()) notes.push_back(source.beside_states);
}

}  // namespace shardwright

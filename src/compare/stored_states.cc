// SPDX-License-Identifier: Apache-2.0
#include "compare/stored_states.h"

#include "compare/recorded_optimizer.h"
#include "format/formats.h"
#include "model/component_names.h"
#include "plan/canonical.h"
#include "plan/trainer_states.h"

namespace shardwright {

bool has_ordinary_states(const Checkpoint& checkpoint, const Catalog& catalog) {
  const SourceTraits& traits = checkpoint.location.traits;
  return !traits.is_hf_model && !traits.has_module_pieces && !has_component_names(catalog) &&
         has_megatron_names(catalog);
}

Result<StateFindings> find_wrong_stored_states(const Checkpoint& checkpoint,
                                               const Catalog& catalog) {
  if (has_ordinary_states(checkpoint, catalog)) {
    return find_wrong_states(catalog, recorded_optimizer(checkpoint));
  }
  const bool keeps_two = SW_TRY(form_of(checkpoint).keeps_two_moments(checkpoint));
  return find_wrong_trainer_states(catalog, keeps_two);
}

}  // namespace shardwright

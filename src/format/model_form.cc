// SPDX-License-Identifier: Apache-2.0
#include "format/model_form.h"

#include "state/common_state.h"

namespace shardwright {

Status ModelForm::read_states(Checkpoint& /*checkpoint*/, Defects& /*defects*/) const { return {}; }

Result<Catalog> ModelForm::megatron_catalog(const Checkpoint& checkpoint, bool /*accepts_loss*/,
                                            Notes& /*notes*/) const {
  return checkpoint.catalog;
}

bool ModelForm::has_numbered_states(const Catalog& /*stored*/) const { return false; }

Status ModelForm::to_megatron(const ConvertRequest& /*request*/, Checkpoint& /*checkpoint*/,
                              Catalog& /*wanted*/, Notes& /*notes*/) const {
  return {};
}

Result<std::string> ModelForm::common_state(const Checkpoint& checkpoint, Notes& /*notes*/) const {
  return checkpoint.common_state;
}

Result<std::optional<std::int64_t>> ModelForm::iteration(const Checkpoint& checkpoint) const {
  if (checkpoint.common_state.empty()) return std::optional<std::int64_t>();
  return SW_TRY(CommonState::read(checkpoint.common_state)).iteration();
}

std::vector<Error> ModelForm::state_defects(const Checkpoint& /*checkpoint*/) const { return {}; }

Result<bool> ModelForm::keeps_two_moments(const Checkpoint& /*checkpoint*/) const { return false; }

Status ModelForm::check_layers(const Checkpoint& /*checkpoint*/) const { return {}; }

ModelOutline ModelForm::outline(const Checkpoint& /*checkpoint*/) const { return {}; }

Status ModelForm::check_order(const Catalog& /*catalog*/, const SourceOptions& /*options*/) const {
  return {};
}

Result<Catalog> ModelForm::in_order(const Catalog& catalog, const SourceOptions& /*options*/,
                                    Notes& /*notes*/) const {
  return catalog;
}

Result<WeightPairs> ModelForm::weights_stored_twice(const Checkpoint& /*checkpoint*/,
                                                    const Catalog& /*catalog*/) const {
  return WeightPairs();
}

const ModelForm& ordinary_form() {
  static const ModelForm form;
  return form;
}

}  // namespace shardwright

// SPDX-License-Identifier: Apache-2.0
#include "format/legacy/legacy_form.h"

#include "format/legacy/legacy_states.h"

namespace shardwright {
namespace {

class LegacyForm final : public ModelForm {
 public:
  Status read_states(Checkpoint& checkpoint, Defects& defects) const override {
    return read_legacy_optimizer(checkpoint, defects);
  }
};

}  // namespace

const ModelForm& legacy_form() {
  static const LegacyForm form;
  return form;
}

}  // namespace shardwright

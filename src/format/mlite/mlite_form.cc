// SPDX-License-Identifier: Apache-2.0
#include "format/mlite/mlite_form.h"

#include "format/mlite/mlite_source.h"

namespace shardwright {
namespace {

class MliteForm final : public ModelForm {
 public:
  Status check_order(const Catalog& catalog, const SourceOptions& options) const override {
    return check_mlite(catalog, options);
  }

  Result<Catalog> in_order(const Catalog& catalog, const SourceOptions& options,
                           Notes& notes) const override {
    return global_from_mlite(catalog, options, notes);
  }
};

}  // namespace

const ModelForm& mlite_form() {
  static const MliteForm form;
  return form;
}

}  // namespace shardwright

// SPDX-License-Identifier: Apache-2.0
#include "format/torch_dcp/torch_dcp_form.h"

#include "base/translated.h"
#include "format/fsdp_dtensor/fsdp_form.h"
#include "format/fsdp_dtensor/fsdp_source.h"
#include "format/fsdp_dtensor/fsdp_state.h"
#include "format/torch_dcp/fsdp_names.h"

namespace shardwright {
namespace {

Catalog named_as_fsdp(const Checkpoint& checkpoint) {
  return FsdpNames::of(checkpoint).apply(checkpoint.catalog);
}

class TorchDcpForm final : public ModelForm {
 public:
  Result<Catalog> megatron_catalog(const Checkpoint& checkpoint, bool accepts_loss,
                                   Notes& notes) const override {
    const FsdpNames& names = FsdpNames::of(checkpoint);
    if (names.unknown_states()) {
      notes.push_back(translated("{}: whose its optimizer states are is not known: {}",
                                 checkpoint.location.path, names.unknown_states()->message));
    }
    const Catalog named = names.apply(checkpoint.catalog);
    return accepts_loss ? named_canonically(named, checkpoint.arguments, notes)
                        : canonical_from_fsdp(named, checkpoint.arguments, notes);
  }

  bool has_numbered_states(const Catalog& stored) const override {
    return FsdpNames::has_numbers(stored);
  }

  Status to_megatron(const ConvertRequest& request, Checkpoint& checkpoint, Catalog& wanted,
                     Notes& notes) const override {
    return undo_torch_dcp(request, checkpoint, wanted, notes);
  }

  Result<std::string> common_state(const Checkpoint& checkpoint, Notes& notes) const override {
    return make_common_state(named_as_fsdp(checkpoint), *checkpoint.files, true, notes);
  }

  Result<std::optional<std::int64_t>> iteration(const Checkpoint& checkpoint) const override {
    return read_fsdp_iteration(checkpoint.catalog, *checkpoint.files);
  }

  std::vector<Error> state_defects(const Checkpoint& checkpoint) const override {
    const FsdpNames& names = FsdpNames::of(checkpoint);
    std::vector<Error> defects;
    if (names.unknown_states()) defects.push_back(*names.unknown_states());
    const Status masters = names.check_masters(names.apply(checkpoint.catalog));
    if (!masters) defects.push_back(masters.error());
    return defects;
  }

  Status check_layers(const Checkpoint& checkpoint) const override {
    return check_fsdp_stages(named_as_fsdp(checkpoint), checkpoint.arguments);
  }

  ModelOutline outline(const Checkpoint& checkpoint) const override {
    return outline_of_fsdp(named_as_fsdp(checkpoint), checkpoint.arguments);
  }
};

}  // namespace

const ModelForm& torch_dcp_form() {
  static const TorchDcpForm form;
  return form;
}

}  // namespace shardwright

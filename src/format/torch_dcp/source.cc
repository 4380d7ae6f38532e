// SPDX-License-Identifier: Apache-2.0
#include "format/torch_dcp/source.h"

#include "dcp/rank_metadata.h"
#include "format/fsdp_dtensor/module_source.h"
#include "format/torch_dcp/fsdp_names.h"
#include "format/torch_dcp/torch_dcp_form.h"
#include "layout/fsdp_name.h"
#include "layout/texts.h"

namespace shardwright {
namespace {

class TorchDcpSource final : public ModuleSource {
 public:
  std::string_view name() const override { return "torch_dcp"; }

  SourceTraits traits() const override {
    return {.has_chunk_list = true,
            .has_layers_apart = true,
            .has_module_pieces = true,
            .has_state_entries = true,
            .holds_extras = false,
            .leftover_ending = kChunkFiles};
  }

  Phrase summary() const override { return phrase("format.torch_dcp"); }

  // Scripts knew it as plain DCP before it had a name.
  std::string_view shown_container() const override { return "dcp"; }

  Status settle(Checkpoint& checkpoint, Defects& /*defects*/) const override {
    checkpoint.of_format = FsdpNames::unfound();
    return {};
  }

  const ModelForm& form() const override { return torch_dcp_form(); }

 private:
  bool is_model_name(std::string_view name) const override { return is_torch_dcp_model_name(name); }
};

}  // namespace

const SourceFormat& torch_dcp_source() {
  static const TorchDcpSource format;
  return format;
}

}  // namespace shardwright

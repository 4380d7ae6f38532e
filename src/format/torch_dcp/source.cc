// SPDX-License-Identifier: Apache-2.0
#include "format/torch_dcp/source.h"

#include <algorithm>

#include "dcp/rank_metadata.h"
#include "format/dcp/dcp_reader.h"
#include "format/safetensors/source.h"
#include "format/torch_dcp/torch_dcp_form.h"
#include "layout/fsdp_name.h"
#include "layout/texts.h"

namespace shardwright {
namespace {

class TorchDcpSource final : public SourceFormat {
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

  std::string_view usual_target() const override { return "hf"; }

  // Scripts knew it as plain DCP before it had a name.
  std::string_view shown_container() const override { return "dcp"; }

  // Under its own names it may have become safetensors files.
  bool may_lie_in(const SourceTraits& files) const override {
    return files.has_chunk_list ? !files.needs_common_state
                                : safetensors_source().may_lie_in(files);
  }

  Status open(Checkpoint& checkpoint, Defects& defects) const override {
    return read_dcp(checkpoint, defects);
  }

  // Nothing but names tells it from plain DCP.
  bool is_spoken_in(const Checkpoint& checkpoint) const override {
    const bool is_list = checkpoint.location.traits.has_chunk_list;
    if (!is_list && !safetensors_source().is_spoken_in(checkpoint)) return false;
    return std::ranges::any_of(checkpoint.catalog.tensors, [](const StoredTensor& tensor) {
      return is_torch_dcp_model_name(tensor.desc.name);
    });
  }

  SourceTraits traits_of(const Checkpoint& checkpoint) const override {
    if (checkpoint.location.traits.has_chunk_list) return traits();
    SourceTraits found = safetensors_source().traits_of(checkpoint);
    found.has_module_pieces = found.has_state_entries = true;
    found.holds_extras = false;
    return found;
  }

  const ModelForm& form() const override { return torch_dcp_form(); }
};

}  // namespace

const SourceFormat& torch_dcp_source() {
  static const TorchDcpSource format;
  return format;
}

}  // namespace shardwright

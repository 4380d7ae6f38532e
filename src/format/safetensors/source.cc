// SPDX-License-Identifier: Apache-2.0
#include "format/safetensors/source.h"

#include "format/hf/source.h"
#include "format/safetensors/safetensors_target.h"
#include "layout/texts.h"
#include "plan/canonical.h"

namespace shardwright {
namespace {

class SafetensorsSource final : public SourceFormat {
 public:
  std::string_view name() const override { return safetensors_target().traits().name; }

  SourceTraits traits() const override { return hf_source().traits(); }

  Phrase summary() const override { return phrase("format.safetensors"); }

  std::string_view usual_target() const override { return hf_source().usual_target(); }

  // Before it had a name scripts knew it as what it lies in.
  std::string_view shown_container() const override { return hf_source().name(); }

  bool may_lie_in(const SourceTraits& found) const override {
    return found.is_hf_model && found.records == Records::kNone;
  }

  Status open(Checkpoint& checkpoint, Defects& defects) const override {
    return hf_source().open(checkpoint, defects);
  }

  bool is_spoken_in(const Checkpoint& checkpoint) const override {
    return checkpoint.hf_config.empty() && has_megatron_names(checkpoint.catalog);
  }

  SourceTraits traits_of(const Checkpoint& checkpoint) const override {
    SourceTraits found = checkpoint.location.traits;
    found.is_hf_model = false;
    found.has_layers_apart = true;
    return found;
  }
};

}  // namespace

const SourceFormat& safetensors_source() {
  static const SafetensorsSource format;
  return format;
}

}  // namespace shardwright

// SPDX-License-Identifier: Apache-2.0
#include "format/mlite/source.h"

#include <algorithm>

#include "dcp/rank_metadata.h"
#include "format/dcp/dcp_reader.h"
#include "format/mlite/dist_opt_names.h"
#include "format/mlite/mlite_form.h"
#include "format/mlite/rank_files.h"
#include "layout/finding_rules.h"
#include "layout/mlite_layout.h"
#include "layout/texts.h"

namespace shardwright {
namespace {

Phrase lost_by(MliteLoss loss) {
  if (loss == MliteLoss::kExperts) return phrase("mlite.lost_experts");
  if (loss == MliteLoss::kRows) return phrase("mlite.lost_rows");
  return phrase("mlite.lost_both");
}

// Nothing records the layout: shapes and chunks tell it.
void add_layout(const Catalog& catalog, Diagnosis& diagnosis) {
  const auto layout = read_mlite_layout(catalog);
  if (!layout) {
    diagnosis.confidence = Confidence::kAmbiguous;
    diagnosis.evidence.push_back({layout.error().message, layout.error().message});
    return;
  }
  diagnosis.sizes.expert = layout->expert;
  if (layout->loss != MliteLoss::kNone) {
    diagnosis.complete = false;
    add_finding(diagnosis, "L37",
                {{"name", layout->lost},
                 {"what", lost_by(layout->loss)},
                 {"experts", layout->experts},
                 {"ep", layout->expert}});
    return;
  }
  diagnosis.sizes.expert_tensor = layout->expert_tensor;
  diagnosis.sizes.tensor = layout->tensor;
  diagnosis.sizes.data = layout->data;
}

class MliteSource : public SourceFormat {
 public:
  std::string_view name() const override { return "mlite"; }

  SourceTraits traits() const override {
    return {.has_chunk_list = true, .has_layers_apart = true, .leftover_ending = kChunkFiles};
  }

  SourceTraits traits_of(const Checkpoint& checkpoint) const override {
    SourceTraits found = checkpoint.location.traits;
    found.has_layers_apart = true;
    found.shares_by_name = false;
    return found;
  }

  Phrase summary() const override { return phrase("format.mlite"); }

  std::string_view usual_target() const override { return "safetensors"; }

  bool may_lie_in(const SourceTraits& files) const override {
    return files.has_chunk_list && !files.needs_common_state;
  }

  // Scripts knew it as plain DCP before it had a name.
  std::string_view shown_container() const override { return "dcp"; }

  Status open(Checkpoint& checkpoint, Defects& defects) const override {
    return read_dcp(checkpoint, defects);
  }

  const ModelForm& form() const override { return mlite_form(); }

  Status settle(Checkpoint& checkpoint, Defects& /*defects*/) const override {
    checkpoint.location.traits.has_local_numbers = has_mlite_names(checkpoint.catalog);
    return {};
  }

  void add_findings(const Checkpoint& checkpoint, Diagnosis& diagnosis) const override {
    if (checkpoint.location.traits.has_local_numbers) add_layout(checkpoint.catalog, diagnosis);
  }

  bool is_spoken_in(const Checkpoint& checkpoint) const override {
    if (has_mlite_names(checkpoint.catalog)) return true;
    const auto entries = checkpoint.directory->list("");
    return entries && std::ranges::any_of(*entries, is_mlite_rank_file);
  }
};

// What its optimizer `dist_opt`, the usual one, saves by Megatron-Core.
class MliteDistOptSource final : public MliteSource {
 public:
  std::string_view name() const override { return "mlite_dist_opt"; }

  SourceTraits traits() const override {
    SourceTraits traits = MliteSource::traits();
    traits.needs_common_state = true;
    return traits;
  }

  Phrase summary() const override { return phrase("format.mlite_dist_opt"); }

  bool may_lie_in(const SourceTraits& files) const override {
    return files.has_chunk_list && files.needs_common_state;
  }

  // Scripts knew it as that before it had a name.
  std::string_view shown_container() const override { return "torch_dist"; }

  Status open(Checkpoint& /*checkpoint*/, Defects& /*defects*/) const override {
    return {};  // it is found as what it lies in
  }

  bool is_spoken_in(const Checkpoint& checkpoint) const override {
    return has_dist_opt_names(checkpoint.catalog);
  }

  Status settle(Checkpoint& checkpoint, Defects& defects) const override {
    name_as_mlite(checkpoint.catalog);
    return MliteSource::settle(checkpoint, defects);
  }
};

}  // namespace

const SourceFormat& mlite_source() {
  static const MliteSource format;
  return format;
}

const SourceFormat& mlite_dist_opt_source() {
  static const MliteDistOptSource format;
  return format;
}

}  // namespace shardwright

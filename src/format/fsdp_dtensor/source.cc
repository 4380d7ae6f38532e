// SPDX-License-Identifier: Apache-2.0
#include "format/fsdp_dtensor/source.h"

#include <fmt/format.h>

#include "base/translated.h"
#include "dcp/rank_metadata.h"
#include "format/chunk_list.h"
#include "format/fsdp_dtensor/fsdp_form.h"
#include "format/fsdp_dtensor/fsdp_source.h"
#include "format/fsdp_dtensor/module_source.h"
#include "layout/finding_rules.h"
#include "layout/fsdp_name.h"
#include "layout/texts.h"

namespace shardwright {
namespace {

constexpr std::string_view kFsdpBackend = "fsdp_dtensor";

class FsdpDtensorSource final : public ModuleSource {
 public:
  std::string_view name() const override { return "fsdp_dtensor"; }

  SourceTraits traits() const override {
    return {.has_chunk_list = true,
            .has_layers_apart = true,
            .has_module_pieces = true,
            .has_state_entries = true,
            .weights_are_main = true,
            .holds_extras = false,
            .leftover_ending = kChunkFiles};
  }

  Phrase summary() const override { return phrase("format.fsdp_dtensor"); }

  Result<std::optional<Recognition>> recognise(const Folder& folder) const override {
    const auto backend = SW_TRY(sharded_backend(folder));
    if (backend != kFsdpBackend) return std::optional<Recognition>();
    const std::optional<std::string> list = chunk_list_of(folder);
    Recognition found;
    if (!list) found.strength = Recognition::Strength::kRemains;
    if (list) found.facts.push_back(*list);
    found.facts.push_back(translated("metadata.json names the {} backend", kFsdpBackend));
    return found;
  }

  const ModelForm& form() const override { return fsdp_form(); }

  void add_findings(const Checkpoint& checkpoint, Diagnosis& diagnosis) const override {
    const FsdpStages stages = count_fsdp_stages(checkpoint.catalog, checkpoint.arguments);
    if (!stages.lost_layers()) return;
    diagnosis.complete = false;
    add_finding(
        diagnosis, "L38",
        {{"layers", stages.found}, {"expected", stages.expected}, {"stages", stages.stages}});
  }

 private:
  // Without metadata.json only names tell it from plain DCP.
  bool is_model_name(std::string_view name) const override { return is_fsdp_model_name(name); }
};

}  // namespace

const SourceFormat& fsdp_dtensor_source() {
  static const FsdpDtensorSource format;
  return format;
}

bool is_fsdp(const Checkpoint& checkpoint) {
  return checkpoint.location.format == fsdp_dtensor_source().name();
}

}  // namespace shardwright

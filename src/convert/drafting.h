// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "canonical/adapter_updates.h"
#include "canonical/model_facts.h"
#include "compare/master_form.h"
#include "format/target_format.h"
#include "model/mappings.h"
#include "model/quantise_choice.h"
#include "shardwright/convert.h"

namespace shardwright {

/// An adapter that is merged, and what it does to the model.
struct TakenAdapter {
  PeftAdapter adapter;
  AdapterUpdates updates;
  std::uint32_t file = 0;  ///< of its tensors, in the source's catalogs
  /// What the base's packed tensors are stored as, by the model's names.
  std::unordered_map<std::string, std::string> packed;

  /// One of its tensors as the source's catalogs have it. Names stay: no model's begin as an
  /// adapter's.
  [[nodiscard]] StoredTensor stored(std::uint32_t tensor) const;
};

/// A conversion on its way to a plan: what each step hands on to the next.
struct Drafting {
  const Target* target = nullptr;
  PreparedConversion result;  ///< request, source, family, notes and `plan.quantised`
  Catalog catalog;            ///< what of the source is wanted
  Mappings mappings;
  MasterForm master_form = MasterForm::kRounded;
  std::vector<std::string> stored_names;  ///< of its tensors, where the model has others
  std::optional<TakenAdapter> adapter;
  TargetParts parts;
  InterleavedGates gates;  ///< of a Megatron target's weights

  [[nodiscard]] const ConvertRequest& request() const { return result.request; }
  [[nodiscard]] const Checkpoint& source() const { return result.source; }
  [[nodiscard]] const TargetTraits& traits() const { return target->traits(); }
  [[nodiscard]] bool is_from_hf() const { return source().location.traits.is_hf_model; }
  void tell(std::string note) { result.notes.push_back(std::move(note)); }
  /// What is mapped by, and what goes along, is this text from now on.
  void replace_config(std::string text);
};

/// A conversion as far as its drafts: what each tensor of the target is made of and what goes
/// along, before anything is laid out in files. Errors: those of prepare_conversion().
[[nodiscard]] Result<Drafting> draft_conversion(const ConvertRequest& request);

/// Where a Hugging Face model's tensors keep their names in files of tensors: what its code
/// computes with in float32 keeps its dtype under `--dtype`. Error: kDtypeUnsupported for weights
/// that are stored as values and scales, of which such a cast would round the scales.
[[nodiscard]] Status keep_own_dtypes(Drafting& drafting);

/// Loads the mapping files that may speak of the source, once.
[[nodiscard]] Status load_mappings(Drafting& drafting);

/// Opens the adapter of the request, finds what it changes and puts its whole tensors in their
/// places. Errors: those of open_peft_adapter and match_adapter; kUsage for a base without Hugging
/// Face's names; kConfigMissing; kUnsupportedFormat for a base that bitsandbytes quantised.
[[nodiscard]] Status take_adapter(Drafting& drafting);

/// The head of a classifier that the adapter has and the base lacks comes in the output layer's
/// place; config.json, which `config` is or which was given besides, becomes that of such a model.
/// `model`: the base's tensors. Errors: kUnmatchedSource and kShapeMismatch for a head that cannot
/// be the base's; kUsage for an --hf-config of a model without it; those of classifier_config.
/// REQUIRES: there is one.
[[nodiscard]] Status give_head_of_adapter(const TakenAdapter& taken,
                                          std::span<const TensorDesc> model,
                                          const std::string& config, Drafting& drafting);

/// Once there are drafts: what is added to which source tensor. Error: kDtypeUnsupported naming a
/// tensor that nothing can be added to; those of set_dora_factors.
[[nodiscard]] Status add_adapter(Drafting& drafting);

/// What both sources' tensors get for a Megatron target: extra values of Hugging Face leave a
/// target that has no place for them; sizes and names are settled.
void finish_megatron_drafts(Drafting& drafting);

/// In which form the request's target has its weights: that of `config_text`, the model's
/// config.json, of the release that the source is or was made of, or a new one. REQUIRES: the
/// request asks for one. Errors: those of choose_quantisation.
[[nodiscard]] Result<QuantiseChoice> choose_quantisation(const ConvertRequest& request,
                                                         std::string_view config_text,
                                                         const ReleasedQuantisation& released);

/// The tensors of a Hugging Face model, and what goes along, as a target with Hugging Face's names
/// calls them. Errors: those of finding the family and of its mapping.
[[nodiscard]] Status draft_hf_as_hf(Drafting& drafting);

/// The same as a target with Megatron's names calls them.
[[nodiscard]] Status draft_hf_as_megatron(Drafting& drafting);

/// Before anything is drafted: whether a Hugging Face model that becomes one again has what its
/// family needs. Notes tell of tensors without a rule and of a family that is not known. Errors:
/// those of model_tensors and map_from_hf for what is missing or of another shape, unless losses
/// are accepted.
[[nodiscard]] Status check_copied_model(Drafting& drafting);

/// The same of a Megatron model that becomes one again, where a config.json, a flag or a record
/// names its family: a note says what that needs besides, as `verify` does.
[[nodiscard]] Status tell_lacking_tensors(Drafting& drafting);

/// An adapter in PEFT's files as a Megatron run has one. Errors: kUsage for another target than
/// torch_dist; kUnsupportedFormat for what Megatron's adapters have no place for; those of
/// open_peft_adapter, of finding the family and of its mapping.
[[nodiscard]] Status draft_peft_as_megatron(Drafting& drafting);

/// The tensors of a Megatron checkpoint, and what goes along, as a target with Hugging Face's names
/// calls them. Errors: kNoFamily for names that are not Megatron's, those of finding the family and
/// of its mapping.
[[nodiscard]] Status draft_megatron_as_hf(Drafting& drafting);

/// The same as a target with Megatron's names calls them.
[[nodiscard]] Status draft_megatron_as_megatron(Drafting& drafting);

/// Takes prediction layers out of a Megatron source where they are to go. Error: kUsage for a
/// Hugging Face model that keeps its names.
[[nodiscard]] Status drop_prediction_layers(Drafting& drafting);

/// The same of a Hugging Face model: what its family makes such layers of.
[[nodiscard]] Status drop_prediction_layers_of_hf(const ModelFacts& facts, Drafting& drafting);

/// The source's tensors, and its config.json, become those of a model that has the layers of
/// `mtp_from`. Errors: those of open_prediction_source; kUsage for layers of its own.
[[nodiscard]] Status take_prediction_layers_into_hf(const ModelFacts& facts, Drafting& drafting);

/// Adds them to what a Megatron source becomes.
[[nodiscard]] Status take_prediction_layers_to_hf(ModelFacts& facts, Drafting& drafting);

}  // namespace shardwright

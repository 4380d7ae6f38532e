// SPDX-License-Identifier: Apache-2.0
#include "convert/hf_drafts.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <span>

#include "base/fail.h"
#include "canonical/contradictions.h"
#include "canonical/correspond.h"
#include "canonical/dequantise.h"
#include "canonical/families.h"
#include "canonical/hf_model.h"
#include "canonical/layer_numbering.h"
#include "canonical/quantise_drafts.h"
#include "convert/asked_quantisation.h"
#include "convert/hf_documents.h"
#include "convert/megatron_drafts.h"
#include "convert/megatron_state.h"
#include "convert/own_dtypes.h"
#include "convert/prediction_drafts.h"
#include "convert/upcycle_drafts.h"
#include "convert/vocabulary_drafts.h"
#include "format/config_edits.h"
#include "model/apply.h"
#include "model/argument_check.h"
#include "model/head_rules.h"
#include "model/nearest_family.h"
#include "plan/canonical.h"

namespace shardwright {
namespace {

// Where no mapping speaks of the model, the message says which one nearly fits.
Result<ModelFacts> facts_of_hf(Drafting& drafting) {
  const Checkpoint& source = drafting.source();
  Result<ModelFacts> facts =
      find_model_facts(drafting.request(), source, drafting.mappings, {}, drafting.result.notes);
  if (facts || facts.error().code != Code::kNoFamily || source.hf_config.empty()) return facts;
  const HfConfig config = SW_TRY(read_hf_config(source.hf_config));
  const ModelTensors model =
      SW_TRY(model_tensors(source.catalog, source.hf_config, source.files.get()));
  const Mappings mappings = SW_TRY(load_all_mappings(drafting.request()));
  const std::string nearest = nearest_family(mappings, config, model.tensors);
  if (nearest.empty()) return facts;
  if (names_one_of(config, mappings)) {  // of which this is a variant that is not known
    return fail(Code::kNoFamily, "{}; {}", facts.error().message, nearest);
  }
  return fail(Code::kNoFamily,
              "config.json: found architecture '{}', expected one that 'shardwright map list' "
              "shows; {}; a mapping file of your own (--map) can extend that family: "
              "docs/mapping.md says how, 'shardwright map check' tries it",
              config.architectures.empty()
                  ? config.model_type
                  : fmt::format("{}", fmt::join(config.architectures, ", ")),
              nearest);
}

// Biases that config.json denies, widths that are others: the run's arguments would repeat it.
Status tell_contradictions(const ModelFacts& facts, std::span<const TensorDesc> hf,
                           Drafting& drafting) {
  Catalog made;
  for (const DraftTensor& tensor : drafting.parts.tensors) {
    made.tensors.push_back({tensor.desc, ChunkList(tensor.desc.shape.size())});
  }
  const auto args = args_from_hf_config(*facts.mapping, *facts.config, hf);
  if (!args || !has_megatron_names(made)) return {};
  std::vector<Contradiction> found = contradicted_arguments(
      Arguments(args->values.begin(), args->values.end()), SW_TRY(canonical_descs(made)));
  std::erase_if(found, [&](const Contradiction& each) {
    return is_of_replaced_head(*facts.config, each.argument);
  });
  if (found.empty()) return {};
  drafting.tell(contradiction_error(drafting.source().location.path, "what config.json says", found,
                                    "the run's arguments repeat it; correct it, or give the true "
                                    "one with --hf-config")
                    .message);
  return {};
}

// From here on the catalog has the names and shapes of the model.
void keep_stored_names(Drafting& drafting) {
  for (const StoredTensor& tensor : drafting.catalog.tensors) {
    drafting.stored_names.push_back(tensor.desc.name);
  }
}

// A packed table (GPTQ, AWQ) has other names than the model's tensor, and no rows to add to.
Status check_stored_plainly(const std::set<std::string>& tables,
                            const std::vector<DraftTensor>& drafts) {
  constexpr std::string_view kWeight = ".weight";
  for (const std::string& table : tables) {
    if (!table.ends_with(kWeight)) continue;
    const std::string module = table.substr(0, table.size() - kWeight.size() + 1);
    const auto is_of_it = [&](const DraftTensor& draft) {
      return draft.desc.name.starts_with(module);
    };
    const auto is_it = [&](const DraftTensor& draft) { return draft.desc.name == table; };
    if (!std::ranges::any_of(drafts, is_of_it) || std::ranges::any_of(drafts, is_it)) continue;
    return fail(Code::kUnsupportedFormat,
                "--extend-vocab: tensor {} is stored quantised, and no rows can be added to it; "
                "--dtype bfloat16 writes what its numbers mean",
                table);
  }
  return {};
}

// Which tensors have a row for each token only the family tells.
Status extend_vocabulary_of_hf(Drafting& drafting) {
  if (!drafting.request().extend_vocab) return {};
  SW_TRY(load_mappings(drafting));
  const ModelFacts facts = SW_TRY(facts_of_hf(drafting));
  drafting.result.family = facts.mapping->family;
  const Checkpoint& source = drafting.source();
  const ModelTensors model =
      SW_TRY(model_tensors(source.catalog, facts.config_text, source.files.get()));
  Notes told_elsewhere;
  const Correspondence correspondence =
      SW_TRY(correspond_from_hf(facts, model, source.catalog, *source.files, told_elsewhere));
  const std::set<std::string> tables = hf_tables(correspondence);
  SW_TRY(check_stored_plainly(tables, drafting.parts.tensors));
  const std::int64_t rows = SW_TRY(vocabulary_of(facts));
  return extend_vocabulary(
      drafting, rows, [&](const DraftTensor& tensor) { return tables.contains(tensor.desc.name); },
      facts.mapping->token_tables);
}

// What they are multiplied to is not what is stored.
std::set<std::string, std::less<>> changed_by_adapter(const Drafting& drafting) {
  std::set<std::string, std::less<>> changed;
  if (!drafting.adapter) return changed;
  for (const ModelUpdate& update : drafting.adapter->updates.updates) changed.insert(update.tensor);
  for (const SavedTensor& saved : drafting.adapter->updates.saved) changed.insert(saved.name);
  return changed;
}

}  // namespace

// As it is, scales included; another dtype is another model, in which nothing is quantised.
Status draft_hf_as_hf(Drafting& drafting) {
  const ConvertRequest& request = drafting.request();
  PreparedConversion& result = drafting.result;
  TargetParts& parts = drafting.parts;
  if (!request.mtp_from.empty()) {
    SW_TRY(load_mappings(drafting));
    const ModelFacts facts = SW_TRY(facts_of_hf(drafting));
    SW_TRY(take_prediction_layers_into_hf(facts, drafting));
  }
  Catalog& catalog = drafting.catalog;
  const bool is_quantised = request.quantise != WeightForm::kPlain;
  if (!request.dtype && !is_quantised) {
    parts.tensors = draft_identity(catalog, {});
    SW_TRY(extend_vocabulary_of_hf(drafting));
    return add_hf_documents(request, drafting.source(), nullptr, {}, parts, result.notes);
  }
  ModelTensors model =
      SW_TRY(model_tensors(catalog, drafting.source().hf_config, drafting.source().files.get()));
  keep_stored_names(drafting);
  QuantiseChoice choice;
  std::vector<DraftTensor> kept;
  if (is_quantised) {
    const std::string config = SW_TRY(config_text_of(request, drafting.source()));
    const ReleasedQuantisation released =
        SW_TRY(released_quantisation(model, drafting.source().hf_config));
    choice = SW_TRY(choose_quantisation(request, config, released));
    kept = keep_quantised(choice, catalog, changed_by_adapter(drafting), model);
  }
  const DType dtype = request.dtype.value_or(DType::kBF16);
  declare_quantised(model, dtype, catalog, result.plan.quantised, result.notes);
  parts.tensors = draft_identity(catalog, {request.dtype, LayerKeys::kAutomatic});
  keep_model_tensors(model, dtype, parts.tensors);
  SW_TRY(restore_own_dtypes(drafting));
  if (!is_quantised) {
    SW_TRY(extend_vocabulary_of_hf(drafting));
    return add_hf_documents(request, drafting.source(), nullptr, {}, parts, result.notes);
  }
  restore_kept(std::move(kept), parts.tensors);
  SW_TRY(extend_vocabulary_of_hf(drafting));
  SW_TRY(quantise_drafts(choice, parts.tensors, result.notes));
  return add_hf_documents(request, drafting.source(), nullptr, choice, parts, result.notes);
}

Status draft_hf_as_megatron(Drafting& drafting) {
  const ConvertRequest& request = drafting.request();
  const Checkpoint& source = drafting.source();
  PreparedConversion& result = drafting.result;
  TargetParts& parts = drafting.parts;
  SW_TRY(load_mappings(drafting));
  ModelFacts facts = SW_TRY(facts_of_hf(drafting));
  result.family = facts.mapping->family;
  if (!request.mtp_from.empty()) {
    SW_TRY(take_prediction_layers_into_hf(facts, drafting));
    facts = SW_TRY(facts_of_hf(drafting));
  }
  SW_TRY(drop_prediction_layers_of_hf(facts, drafting));
  SW_TRY(drafting.target->take_family(*facts.mapping, parts));
  keep_stored_names(drafting);
  const TargetTraits& traits = drafting.traits();
  const LayerKeys keys = traits.has_layers_apart ? LayerKeys::kAllNumbered : layer_keys_of(facts);
  parts.tensors =
      SW_TRY(draft_hf_model(facts, {{request.dtype, keys}, traits.holds_extras}, drafting.catalog,
                            *source.files, result.plan.quantised, result.notes));
  SW_TRY(check_layer_dtypes(parts.tensors, keys));
  const ModelTensors all =
      SW_TRY(model_tensors(source.catalog, facts.config_text, source.files.get()));
  SW_TRY(tell_contradictions(facts, all.tensors, drafting));
  if (request.extend_vocab) {
    const std::int64_t rows = SW_TRY(vocabulary_of(facts));
    SW_TRY(extend_vocabulary(
        drafting, rows, [](const DraftTensor& tensor) { return tensor.true_rows.has_value(); },
        facts.mapping->token_tables));
  }
  if (request.upcycle) {
    const ArgsFromConfig dense = SW_TRY(args_from_hf_config(*facts.mapping, *facts.config));
    SW_TRY(upcycle(drafting, Arguments(dense.values.begin(), dense.values.end())));
  }
  finish_megatron_drafts(drafting);
  SW_TRY(add_state_from_hf(request, all, facts, parts, result.notes));
  SW_TRY(add_documents_beside(request, source, parts, result.notes));
  drafting.target->add_prefix(facts.mapping->torch_dist_prefix, parts);
  return {};
}

}  // namespace shardwright

// SPDX-License-Identifier: Apache-2.0
#include "convert/megatron_drafts.h"

#include <algorithm>
#include <set>

#include "base/fail.h"
#include "base/text.h"
#include "canonical/constants.h"
#include "canonical/correspond.h"
#include "canonical/correspondence_notes.h"
#include "canonical/exact_values.h"
#include "canonical/hf_model.h"
#include "canonical/layer_numbering.h"
#include "canonical/quantise_drafts.h"
#include "canonical/repeated_rows.h"
#include "canonical/unfold.h"
#include "compare/copies.h"
#include "convert/adapter_documents.h"
#include "convert/asked_quantisation.h"
#include "convert/hf_documents.h"
#include "convert/left_out_extras.h"
#include "convert/megatron_state.h"
#include "convert/prediction_drafts.h"
#include "convert/target_gates.h"
#include "convert/upcycle_drafts.h"
#include "convert/vocabulary_drafts.h"
#include "layout/adapter_shards.h"
#include "layout/model_head.h"
#include "layout/piece_limit.h"
#include "model/adapter_rules.h"
#include "model/expert_parameter.h"
#include "plan/canonical.h"
#include "state/document_names.h"
#include "state/recorded_run.h"
#include "state/source_keys.h"

namespace shardwright {
namespace {

// By its names alone nobody can tell which encoder a tensor is of.
Status find_routes(Drafting& drafting) {
  if (!drafting.traits().has_components) return {};
  SW_TRY(load_mappings(drafting));
  PreparedConversion& result = drafting.result;
  const ModelFacts facts = SW_TRY(find_megatron_facts(
      result.request, result.source, drafting.mappings, drafting.catalog, result.notes));
  result.family = facts.mapping->family;
  return drafting.target->take_family(*facts.mapping, drafting.parts);
}

Status draft_as_stored(Drafting& drafting) {
  const Catalog& catalog = drafting.catalog;
  const std::optional<DType> dtype = drafting.request().dtype;
  std::vector<DraftTensor>& tensors = drafting.parts.tensors;
  if (drafting.traits().has_layers_apart) {
    SW_TRY(check_piece_count(descs_of(catalog)));
    tensors = draft_layers(catalog, {dtype, LayerKeys::kAllNumbered});
    return {};
  }
  tensors = draft_identity(catalog, {dtype, LayerKeys::kAutomatic});
  if (drafting.source().location.traits.has_layers_apart) {
    const LayerKeys keys = layer_keys_of(drafting.source().arguments);
    tensors = stack_layers(std::move(tensors), keys);
    SW_TRY(check_layer_dtypes(tensors, keys));
  }
  return {};
}

// What Megatron itself saved it also finds again; other software puts words before its names.
Status check_roots(const Drafting& drafting) {
  const SourceTraits& traits = drafting.source().location.traits;
  const bool is_megatrons_own = traits.needs_common_state || traits.is_of_ranks;
  if (is_megatrons_own || has_megatron_roots(drafting.catalog)) return {};
  return fail(Code::kNoFamily,
              "{}: found Megatron's names behind others ({} the first), expected decoder.* or "
              "embedding.* outermost, which Megatron asks for; --to safetensors keeps any names",
              drafting.request().input, printable(drafting.catalog.tensors.front().desc.name));
}

// How many rows mean something the run's arguments tell.
Status extend_vocabulary_of_megatron(Drafting& drafting) {
  if (!drafting.request().extend_vocab) return {};
  const std::optional<std::int64_t> rows = true_vocabulary(drafting.source().arguments);
  if (!rows) {
    return fail(Code::kUsage,
                "{}: its arguments don't tell rows of the vocabulary from padding; convert it with "
                "--to hf --hf-config, extend that and convert it back",
                drafting.request().input);
  }
  // Without a known family only embedding and head are token tables.
  SW_TRY(load_mappings(drafting));
  Notes told_elsewhere;
  const auto facts = find_megatron_facts(drafting.request(), drafting.source(), drafting.mappings,
                                         drafting.catalog, told_elsewhere);
  const std::vector<std::string> others =
      facts ? facts->mapping->token_tables : std::vector<std::string>();
  const OutputHeads heads(descs_of(drafting.parts.tensors));
  return extend_vocabulary(
      drafting, *rows,
      [&](const DraftTensor& tensor) {
        return !ends_as_any(tensor.desc.name, others) && heads.has_vocabulary_rows(tensor.desc);
      },
      others);
}

// What lies beside the source's tensors.
void carry_files(const Checkpoint& source, TargetParts& parts) {
  for (const auto& [name, object] : source.artifacts) {
    parts.artifacts.emplace_back(parts.folder + "hf/" + name, object);
  }
  if (!source.source_keys.empty()) {
    parts.files.push_back(
        {fmt::format("{}{}", parts.folder, kCarriedKeysFile), source.source_keys});
  }
  for (const auto& [name, object] : source.companions) {
    parts.artifacts.emplace_back(parts.folder + name, object);
  }
}

// Of how many ranks rows are that stand in their order.
struct RankOrder {
  std::int64_t tensor = 1;
  std::int64_t expert_tensor = 1;
};

// How many ranks' rows stand one after another in those tensors: as the run tells its size, else
// as its ranks have stored them.
Result<RankOrder> ranks_of_rows(const Checkpoint& source, const Catalog& catalog) {
  std::optional<std::int64_t> dense;
  std::optional<std::int64_t> experts;
  const RecordedRun run = recorded_run(SW_TRY(run_arguments(source)));
  for (const StoredTensor& tensor : catalog.tensors) {
    if (!is_in_rank_order(tensor.desc.name)) continue;
    const AdapterTensor adapter = *adapter_tensor(tensor.desc.name);
    const bool is_vector = adapter.part == AdapterTensor::Part::kMagnitude;
    const int rows = tensor.desc.shape.size() - (is_vector ? 1 : 2);
    if (rows < 0) continue;
    const bool is_expert = is_of_experts(adapter);
    std::optional<std::int64_t>& ranks = is_expert ? experts : dense;
    // Experts are shared out as everything else where a run says nothing else.
    if (!ranks && is_expert) ranks = run.sizes.expert_tensor;
    if (!ranks) ranks = run.sizes.tensor;
    std::set<std::int64_t> begins;
    for (std::size_t i = 0; i < tensor.chunks.size(); ++i) {
      begins.insert(tensor.chunks.box(i).origin[rows]);
    }
    const std::size_t pieces = begins.size();
    const auto seen =
        static_cast<std::int64_t>(adapter.is_half && pieces > 1 ? pieces / 2 : pieces);
    if (!ranks) ranks = seen;
    if (pieces == 1 || seen == *ranks) continue;
    return fail(Code::kShapeMismatch,
                "tensor {}: found rows of {} tensor ranks, expected those of {}: the order of its "
                "rows depends on that",
                tensor.desc.name, seen, *ranks);
  }
  return RankOrder{dense.value_or(1), experts.value_or(1)};
}

// ms-swift's adapters have names; the one that a preference is measured against is `ref_adapter`.
bool is_of_other_adapter(std::string_view name) {
  return name.contains(".lora_A.") || name.contains(".lora_B.");
}

// What a run trains beside its frozen weights, which may be in the checkpoint too. Returns the
// adapters' ranks, where there are any.
Result<std::optional<AdapterRanks>> take_adapters(const ConvertRequest& request, Catalog& catalog,
                                                  Notes& notes) {
  const std::vector<TensorDesc> descs = SW_TRY(canonical_descs(catalog));
  const std::optional<AdapterRanks> ranks = SW_TRY(adapter_ranks(descs));
  if (!ranks) return ranks;
  SW_TRY(check_changes_of_adapters(request));
  std::size_t others = 0;
  std::string first;
  const std::size_t left = std::erase_if(catalog.tensors, [&](const StoredTensor& tensor) {
    if (is_adapter_name(tensor.desc.name)) return false;
    if (is_of_other_adapter(tensor.desc.name) && others++ == 0) first = tensor.desc.name;
    return true;
  });
  if (others > 0) {
    notes.push_back(translated(
        "{} tensors of adapters with other names are left out, {} the first: what is trained is "
        "called default",
        others, printable(first)));
  }
  if (left > others) {
    notes.push_back(translated(
        "{} tensors beside the adapters are left out: they are the base model's", left - others));
  }
  return ranks;
}

// Whether the base's files, where they are given, hold the experts of a layer in one tensor.
bool packs_experts(const ConvertRequest& request) {
  if (request.hf_config_dir.empty()) return false;
  const auto base = open_hf_model(request.hf_config_dir, {}, request.hf_config_dir);
  if (!base) return false;  // config.json alone is enough
  return std::ranges::any_of(base->catalog.tensors, [](const StoredTensor& tensor) {
    const std::string& name = tensor.desc.name;
    const std::string both(kExpertParameters[0]);
    return name.ends_with(both) || name.ends_with(both + "_blocks");
  });
}

// Those keep their order, which a job of another size would misread.
Status check_rows_of_ranks(const Drafting& drafting) {
  const RankOrder order = SW_TRY(ranks_of_rows(drafting.source(), drafting.catalog));
  const ParallelConfig& wanted = drafting.request().parallel;
  for (const StoredTensor& tensor : drafting.catalog.tensors) {
    if (!is_in_rank_order(tensor.desc.name)) continue;
    const bool is_expert = is_of_experts(*adapter_tensor(tensor.desc.name));
    const std::int64_t then = is_expert ? order.expert_tensor : order.tensor;
    const std::int64_t now = is_expert ? wanted.expert_tensor : wanted.tensor;
    if (then == now) continue;
    return fail(Code::kUnsupportedFormat,
                "tensor {}: its rows are in the order of {} tensor ranks and would be read as "
                "those of {}; convert the adapter --to hf --hf-config BASE, and that --to "
                "torch_dist",
                tensor.desc.name, then, now);
  }
  return {};
}

}  // namespace

void finish_megatron_drafts(Drafting& drafting) {
  leave_extras_out(drafting);
  settle_expert_sizes(drafting.parts, drafting.result.request.parallel, drafting.result.notes);
  name_for_spec(drafting.request().spec, drafting.parts.tensors);
}

Status draft_megatron_as_megatron(Drafting& drafting) {
  SW_TRY(check_rows_of_ranks(drafting));
  const ConvertRequest& request = drafting.request();
  const Checkpoint& source = drafting.source();
  TargetParts& parts = drafting.parts;
  if (!has_megatron_names(drafting.catalog)) {
    return fail(
        Code::kNoFamily,
        "{}: no tensor has a Megatron name (decoder.*, embedding.*); --to safetensors keeps "
        "any names",
        request.input);
  }
  SW_TRY(find_routes(drafting));
  SW_TRY(check_roots(drafting));
  SW_TRY(draft_as_stored(drafting));
  SW_TRY(extend_vocabulary_of_megatron(drafting));
  SW_TRY(upcycle(drafting, source.arguments));
  finish_megatron_drafts(drafting);
  SW_TRY(add_state_from_megatron(request, source, drafting.catalog, parts, drafting.result.notes));
  SW_TRY(move_gates_to_target(drafting));
  if (drafting.traits().holds_state_dicts && parts.spec == ModuleSpec::kKeep &&
      source.arguments.empty()) {
    drafting.tell(
        "nothing says which modules the model has: names are those of Megatron's local ones; "
        "--spec te gives those of Transformer Engine");
  }
  carry_files(source, parts);
  drafting.target->add_prefix(source.torch_dist_prefix, parts);
  return {};
}

Status draft_megatron_as_hf(Drafting& drafting) {
  SW_TRY(load_mappings(drafting));
  PreparedConversion& result = drafting.result;
  const ConvertRequest& request = result.request;
  Catalog& catalog = drafting.catalog;
  SourceFiles& files = *result.source.files;
  std::vector<DraftTensor>& tensors = drafting.parts.tensors;
  const std::optional<AdapterRanks> ranks = SW_TRY(take_adapters(request, catalog, result.notes));
  ModelFacts facts =
      SW_TRY(find_megatron_facts(request, result.source, drafting.mappings, catalog, result.notes));
  result.family = facts.mapping->family;
  if (ranks) {
    const RankOrder order = SW_TRY(ranks_of_rows(result.source, catalog));
    facts.sizes.insert_or_assign(std::string(kAdapterTensor), order.tensor);
    facts.sizes.insert_or_assign(std::string(kAdapterExpertTensor), order.expert_tensor);
    if (ranks->experts && packs_experts(request)) {
      facts.sizes.insert_or_assign(std::string(kAdapterPacked), 1);
    }
  }
  const std::vector<CanonicalTensor> canonical = canonical_tensors(catalog);
  const std::vector<TensorDesc> descs = descs_of(canonical);
  const WantedKeys keys = SW_TRY(wanted_keys(result.source));
  const Correspondence correspondence = SW_TRY(correspond_from_megatron(facts, descs, keys));
  SW_TRY(check_constants(correspondence, canonical, catalog, files));
  SW_TRY(check_repeated_rows(correspondence, canonical, catalog, request.accept_loss, files,
                             result.notes));
  tensors = SW_TRY(draft_to_hf(correspondence, canonical, {request.dtype, LayerKeys::kAutomatic}));
  tell_rounded(correspondence, result.notes);
  tell_lacking(correspondence, result.notes);
  SW_TRY(restore_exact_values(correspondence, canonical, catalog, tensors, files, result.notes));
  draft_copies(correspondence.copies, tensors);
  if (!request.mtp_from.empty()) SW_TRY(take_prediction_layers_to_hf(facts, drafting));
  order_like(keys.tensors, tensors);
  if (request.extend_vocab) {
    const std::set<std::string> tables = hf_tables(correspondence);
    const std::int64_t rows = SW_TRY(vocabulary_of(facts));
    SW_TRY(extend_vocabulary(
        drafting, rows,
        [&](const DraftTensor& tensor) { return tables.contains(tensor.desc.name); },
        facts.mapping->token_tables));
  }
  if (ranks) {
    return add_adapter_documents(result.source, *ranks, *facts.mapping, drafting.parts,
                                 result.notes);
  }
  QuantiseChoice choice;
  if (request.quantise != WeightForm::kPlain) {
    const ReleasedQuantisation released =
        SW_TRY(read_recorded_quantisation(result.source.source_keys));
    choice = SW_TRY(choose_quantisation(request, facts.config_text, released));
    SW_TRY(quantise_drafts(choice, tensors, result.notes));
  }
  return add_hf_documents(request, result.source, &facts, choice, drafting.parts, result.notes);
}

}  // namespace shardwright

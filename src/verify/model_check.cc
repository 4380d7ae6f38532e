// SPDX-License-Identifier: Apache-2.0
#include "verify/model_check.h"

#include <algorithm>

#include "base/fail.h"
#include "base/text.h"
#include "base/translated.h"
#include "canonical/canonical_model.h"
#include "canonical/contradictions.h"
#include "canonical/dequantise.h"
#include "canonical/derived_states.h"
#include "canonical/families.h"
#include "canonical/family_fit.h"
#include "canonical/hf_naming.h"
#include "canonical/mlite_naming.h"
#include "canonical/tied_head.h"
#include "compare/copies.h"
#include "format/file_of_tensor.h"
#include "format/formats.h"
#include "format/nothing_stored.h"
#include "format/quantizer_values.h"
#include "layout/lost_parts.h"
#include "layout/object_set.h"
#include "layout/state_sharding.h"
#include "layout/texts.h"
#include "layout/uneven_modules.h"
#include "layout/unsaved_shards.h"
#include "model/apply.h"
#include "model/component_names.h"
#include "model/config_check.h"
#include "model/instances.h"
#include "plan/canonical.h"
#include "plan/draft.h"
#include "state/common_state.h"
#include "state/recorded_run.h"
#include "verify/findings.h"
#include "verify/scale_check.h"
#include "verify/state_check.h"

namespace shardwright {
namespace {

std::vector<std::string> object_names(const Catalog& catalog) {
  std::vector<std::string> names;
  for (const StoredObject& object : catalog.objects) names.push_back(object.name);
  return names;
}

// Of a tensor that lies in one piece, as files of models have it.
const StoredTensor* find_whole(const Catalog& catalog, std::string_view name) {
  const auto found = std::ranges::find(catalog.tensors, name,
                                       [](const StoredTensor& tensor) { return tensor.desc.name; });
  if (found == catalog.tensors.end() || found->encoding != Encoding::kRaw) return nullptr;
  const bool is_whole = found->chunks.size() == 1 && found->chunks[0].strides.empty();
  return is_whole ? &*found : nullptr;
}

class ModelCheck {
 public:
  ModelCheck(const Checkpoint& checkpoint, const ProofOptions& options, VerifyReport& report)
      : checkpoint_(checkpoint),
        report_(report),
        choice_(options.choice),
        source_(options.source) {}

  Status check() {
    if (const Status plain = check_not_smoothed(checkpoint_.catalog); !plain) {
      add_finding(report_, plain.error());
      return {};
    }
    if (checkpoint_.location.traits.is_hf_model) {
      SW_TRY(check_trainer_states(checkpoint_, report_));
      return check_hf();
    }
    if (is_disguised(checkpoint_) && !name_tensors()) return {};
    const Catalog& catalog = named_ ? *named_ : checkpoint_.catalog;
    if (!has_megatron_names(catalog)) {
      if (!has_unnamed_states(checkpoint_, catalog)) {
        SW_TRY(check_trainer_states(checkpoint_, report_));
      }
      descs_ = descs_of(catalog);
      const std::vector<LostPart> lost = lost_local_experts(descs_);
      add_lost(lost);
      return lost.empty() && checkpoint_.location.traits.has_local_numbers ? check_local_numbers()
                                                                           : Status();
    }
    descs_ = SW_TRY(canonical_descs(catalog));
    check_parts();
    add_lost(lost_objects(object_names(checkpoint_.catalog)));
    const std::int64_t tensor = recorded_run(checkpoint_.arguments).sizes.tensor.value_or(1);
    add_lost(unsaved_shards(checkpoint_.catalog, tensor));
    check_state();
    check_states(catalog);
    SW_TRY(check_arguments());
    return check_megatron();
  }

 private:
  Status tell_no_config() {
    report_.notes.emplace_back(
        "no config.json is near, so the model's tensors are not held against a family; "
        "--hf-config names one");
    return {};
  }

  // Under Megatron's names, to which config.json leads, as a conversion sees the model.
  Status check_local_numbers() {
    const std::string config = SW_TRY(config_text_of(choice_, checkpoint_));
    if (config.empty()) return tell_no_config();
    ConvertRequest request;
    static_cast<FamilyChoice&>(request) = choice_;
    static_cast<SourceOptions&>(request) = source_;
    request.input = checkpoint_.location.path;
    Checkpoint own =
        SW_TRY(open_checkpoint(request.input, FormatChoice{checkpoint_.location.format, "--as"}));
    Catalog catalog = checkpoint_.catalog;
    Notes told;  // of what is left out; verify reads all of the checkpoint
    if (const Status named = name_mlite_as_megatron(request, own, catalog, told); !named) {
      // What the caller did not give, or no rule knows, is no defect of the checkpoint.
      const Code code = named.error().code;
      if (code == Code::kConfigMissing || code == Code::kNoFamily) {
        report_.notes.push_back(translated("the model's tensors are not held against a family: ") +
                                named.error().message);
      } else {
        add_finding(report_, named.error());
      }
      return {};
    }
    descs_ = SW_TRY(canonical_descs(catalog));
    const auto facts = SW_TRY(find_facts(descs_));
    if (facts) tell(check_family_fit(*facts, own, descs_));
    return {};
  }

  // As an ordinary Megatron model's; false where what is in their way was told.
  bool name_tensors() {
    Wrappers wrappers;
    Notes left_out;  // of the model only; verify reads all of the checkpoint
    auto named = megatron_catalog(checkpoint_, choice_, wrappers, left_out);
    if (named) {
      named_ = *std::move(named);
      return true;
    }
    const Code code = named.error().code;
    const bool is_unknown = code == Code::kNoFamily || code == Code::kAmbiguousFamily;
    if (is_unknown) {
      unknown_ = std::move(named).error();
    } else {
      add_finding(report_, named.error());
    }
    return is_unknown;
  }

  // A mapping can only be held against a model that it is known to be of.
  Result<std::optional<ModelFacts>> find_facts(std::span<const TensorDesc> canonical) {
    mappings_ = SW_TRY(load_mappings(choice_, checkpoint_));
    std::vector<std::string> notes;
    auto facts = find_model_facts(choice_, checkpoint_, mappings_, canonical, notes);
    if (facts) {
      report_.family = facts->mapping->family;
      if (!facts->differing.empty()) {
        add_finding(report_, Code::kArgumentsContradict, "config.json",
                    differing_note(facts->differing), Severity::kWarning);
      }
      if (!facts->not_held.empty()) report_.notes.push_back(facts->not_held);
      return std::optional(*std::move(facts));
    }
    // A model of nobody's but its own may be near to a known one.
    const Code code = facts.error().code;
    if (code == Code::kUnmatchedTarget || code == Code::kUnmatchedSource ||
        code == Code::kShapeMismatch) {
      add_finding(report_, code, "", facts.error().message, Severity::kWarning);
      return std::optional<ModelFacts>();
    }
    // Without a config.json it repeats what the arguments' own check finds.
    const bool has_config = !checkpoint_.hf_config.empty() || !choice_.hf_config_dir.empty();
    if (code == Code::kJsonCorrupt || (has_config && code == Code::kArgumentsContradict)) {
      add_finding(report_, facts.error());
      return std::optional<ModelFacts>();
    }
    // It can't be loaded so, whatever its tensors are.
    if (has_config && code == Code::kConfigMissing) {
      add_finding(report_, code, "config.json", facts.error().message, Severity::kWarning);
    } else {
      report_.notes.push_back(translated("the model's tensors are not held against a family: ") +
                              (unknown_ ? *unknown_ : facts.error()).message);
    }
    for (std::string& what : uneven_modules(canonical)) {
      add_finding(report_, Code::kModelIncomplete, "", std::move(what), Severity::kWarning);
    }
    return std::optional<ModelFacts>();
  }

  void check_state() {
    const Status state = check_common_state(checkpoint_);
    if (!state) add_finding(report_, state.error().code, "common.pt", state.error().message);
    if (checkpoint_.location.traits.needs_common_state && !checkpoint_.common_state.empty()) {
      check_sharding();
    }
  }

  void check_sharding() {
    const auto common = CommonState::read(checkpoint_.common_state);
    if (!common) return;  // reported when it was opened
    std::vector<std::string> names = object_names(checkpoint_.catalog);
    for (const StoredTensor& tensor : checkpoint_.catalog.tensors) {
      names.push_back(tensor.desc.name);
    }
    std::string what = contradicted_sharding(common->sharding(), names);
    if (what.empty()) return;
    add_finding(report_, Code::kArgumentsContradict, "content_metadata", std::move(what));
  }

  // Those in flat buffers get their names where they are proven.
  void check_states(const Catalog& catalog) {
    if (has_component_names(checkpoint_.catalog)) return;
    if (has_unnamed_states(checkpoint_, catalog)) return;
    check_named_states(catalog, checkpoint_, report_);
    for (const Error& defect : form_of(checkpoint_).state_defects(checkpoint_)) {
      add_finding(report_, defect);
    }
  }

  Status check_arguments() {
    const auto found = contradictions_of(checkpoint_, descs_);
    if (!found) {
      add_finding(report_, found.error());
      return {};
    }
    const bool lost_layers = has_finding(report_, Code::kModelIncomplete);
    for (const Contradiction& each : found->contradictions) {
      if (lost_layers && each.argument == "num_layers") continue;  // told already
      add_finding(report_, Code::kArgumentsContradict, each.argument, each.message);
    }
    const std::size_t held = found->held.size();
    if (held > 0 && found->contradictions.empty()) {
      report_.proven.push_back(phrase("proven.arguments", {{"count", held}}));
    }
    const bool has_arguments = !checkpoint_.arguments.empty() || !checkpoint_.run_config.empty();
    if (held == 0 && has_arguments) {
      report_.notes.emplace_back(
          "the run's arguments say nothing that names and shapes could confirm or contradict");
    }
    return {};
  }

  void check_config(std::span<const TensorDesc> hf) {
    const auto config = read_hf_config(checkpoint_.hf_config);
    if (!config) return;  // the family's search tells
    for (const Contradiction& each : contradicted_config(*config, hf)) {
      add_finding(report_, Code::kArgumentsContradict, each.argument, each.message);
    }
    for (const Contradiction& each : impossible_choices(*config)) {
      add_finding(report_, Code::kArgumentsContradict, each.argument, each.message,
                  Severity::kWarning);
    }
  }

  Status check_hf() {
    const bool needs_own = !checkpoint_.location.traits.is_named_by_family;
    const std::string config =
        needs_own ? checkpoint_.hf_config : SW_TRY(config_text_of(choice_, checkpoint_));
    if (config.empty() && !needs_own) return tell_no_config();
    if (config.empty()) {
      add_finding(report_, Code::kConfigMissing, "config.json",
                  "config.json is missing, so nothing says which tensors the model should have",
                  Severity::kWarning);
      return {};
    }
    Catalog catalog = checkpoint_.catalog;
    Notes told;  // of names; what is stored is told already
    if (const auto named = name_as_hf(choice_, checkpoint_, {&catalog}, told); !named) {
      if (named.error().code == Code::kTwoCheckpoints) {
        report_.notes.push_back(named.error().message);  // each of them is whole
        return {};
      }
      add_finding(report_, named.error());
      return {};
    }
    descs_ = descs_of(catalog);
    const auto own = model_tensors(catalog, config, checkpoint_.files.get());
    check_config(own ? std::span<const TensorDesc>(own->tensors) : descs_);
    if (std::string what = contradicted_quantisation(config, descs_); !what.empty()) {
      add_finding(report_, Code::kArgumentsContradict, "config.json", std::move(what),
                  Severity::kWarning);
    }
    const auto facts = SW_TRY(find_facts({}));
    if (!facts) return {};
    const auto model = model_tensors(catalog, facts->config_text, checkpoint_.files.get());
    if (!model) {
      add_finding(report_, model.error());
      return {};
    }
    const Result<Correspondence> mapped =
        map_from_hf(*facts->mapping, facts->sizes, model->tensors);
    tell(mapped);
    if (mapped) tell_not_there(mapped->lacking);
    if (mapped) tell_unlike_layers(*mapped);
    tell_taken_over(*facts->mapping, Side::kHf);
    if (model->quantised.empty()) check_dtype(facts->config_text);
    SW_TRY(check_tied_head(facts->config_text, *model, catalog));
    check_scales(checkpoint_, catalog, *model, report_);
    return {};
  }

  // It may be right as it is, but Megatron has no place for it.
  void tell_unlike_layers(const Correspondence& mapped) {
    std::vector<DraftTensor> drafts;
    for (const MappedTensor& tensor : mapped.megatron) {
      drafts.push_back({tensor.desc, {}, std::nullopt});
    }
    const Status alike = check_layer_dtypes(drafts, LayerKeys::kAutomatic);
    if (alike) return;
    const Error error = with_file(alike.error(), checkpoint_.catalog);
    add_finding(report_, error.code, "dtype", error.message, Severity::kWarning);
  }

  // Loaders disagree on what such a model computes with.
  Status check_tied_head(const std::string& config_text, const ModelTensors& model,
                         const Catalog& catalog) {
    const auto tied = find_tied_head(config_text, model.tensors);
    if (!tied || !*tied || !(*tied)->is_stored || model.is_quantised((*tied)->head)) return {};
    const StoredTensor* const head = find_whole(catalog, (*tied)->head);
    const StoredTensor* const embedding = find_whole(catalog, (*tied)->embedding);
    if (head == nullptr || embedding == nullptr || report_.has_errors()) return {};
    const std::vector<HfCopy> copies = {{head->desc, embedding->desc.name}};
    if (SW_TRY(find_differing_copies(copies, catalog, *checkpoint_.files)).empty()) return {};
    add_finding(
        report_, Code::kArgumentsContradict, "config.json",
        translated("config.json says by tie_word_embeddings that {} is {}, and it is not: "
                   "transformers 5 computes with the head that is stored, other loaders leave it "
                   "out and compute with the embedding; say false there, or take the head out",
                   head->desc.name, copies.front().original),
        Severity::kWarning);
    return {};
  }

  // Nothing is computed with them here, which a loader does not know.
  void tell_not_there(std::span<const std::string> names) {
    for (const std::string& name : names) {
      add_finding(report_, Code::kUnmatchedTarget, name,
                  translated("{}: missing, and whoever loads the model fills it at random", name),
                  Severity::kWarning);
    }
  }

  // Some tensors may be kept in another dtype, but not all of them.
  void check_dtype(const std::string& config_text) {
    std::string what = contradicted_dtype(config_text, descs_);
    if (what.empty()) return;
    add_finding(report_, Code::kShapeMismatch, "config.json", std::move(what), Severity::kWarning);
  }

  Status check_megatron() {
    const auto facts = SW_TRY(find_facts(descs_));
    if (!facts) return {};
    if (unknown_) {
      add_finding(report_, *unknown_);
      return {};
    }
    tell(check_family_fit(*facts, checkpoint_, descs_));
    tell_taken_over(*facts->mapping, Side::kMegatron);
    return {};
  }

  void tell_taken_over(const Mapping& mapping, Side side) {
    std::vector<std::string> parts;
    for (const AlikePart& part : mapping.alike) {
      if (part.optional) continue;
      parts.push_back((side == Side::kHf ? part.hf.front() : part.megatron) + "*");
    }
    if (parts.empty()) return;
    report_.notes.push_back(
        translated("{}: taken over as it is, without a rule for each tensor; checked are what its "
                   "layers have in common, what the family always has around them and the sizes "
                   "that config.json gives",
                   name_list(parts)));
  }

  template <class Fit>
  void tell(const Fit& fit) {
    if (fit) {
      report_.proven.push_back(phrase("proven.family", {{"family", report_.family}}));
    } else {
      add_finding(report_, with_file(fit.error(), checkpoint_.catalog));
    }
  }

  void check_parts() {
    const std::int64_t layers = number_of(checkpoint_.arguments, {"num_layers"}).value_or(0);
    const std::vector<LostPart> lost = lost_parts(descs_, layers);
    add_lost(lost);
    const std::int64_t named = count_named_layers(descs_);
    const bool has_all = std::ranges::none_of(
        lost, [](const LostPart& part) { return part.name == "decoder.layers"; });
    if (named > 0 && has_all) {
      report_.proven.push_back(phrase("proven.layers", {{"count", named}}));
    }
  }

  void add_lost(std::span<const LostPart> lost) {
    for (const LostPart& part : lost) {
      add_finding(report_, Code::kModelIncomplete, part.name, part.what);
    }
  }

  const Checkpoint& checkpoint_;
  VerifyReport& report_;
  const FamilyChoice& choice_;
  const SourceOptions& source_;
  Mappings mappings_;
  std::optional<Catalog> named_;  ///< where the checkpoint has other names than the model
  std::optional<Error> unknown_;  ///< why a MIMO model's tensors could not be named so
  std::vector<TensorDesc> descs_;
};

}  // namespace

Status check_model(const Checkpoint& checkpoint, const ProofOptions& options,
                   VerifyReport& report) {
  return ModelCheck(checkpoint, options, report).check();
}

}  // namespace shardwright

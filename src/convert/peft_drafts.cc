// SPDX-License-Identifier: Apache-2.0
#include "convert/peft_drafts.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>

#include "base/fail.h"
#include "base/text.h"
#include "canonical/families.h"
#include "canonical/hf_model.h"
#include "canonical/layer_numbering.h"
#include "convert/adapter_layers.h"
#include "convert/adapter_state.h"
#include "format/peft/square_experts.h"
#include "layout/adapter_shards.h"
#include "layout/layer_name.h"
#include "model/adapter_rules.h"
#include "model/apply.h"
#include "model/expert_parameter.h"
#include "state/recorded_run.h"

namespace shardwright {
namespace {

std::unexpected<Error> not_for_megatron(const PeftAdapter& adapter, std::string_view found) {
  return fail(Code::kUnsupportedFormat,
              "{}: found {}, which Megatron's adapters have no place for; 'shardwright "
              "merge-adapter' takes it into the base model",
              adapter.path, found);
}

std::unexpected<Error> for_swift_only(const PeftAdapter& adapter, std::string_view found) {
  return fail(Code::kUnsupportedFormat,
              "{}: found {}, which Megatron-Bridge's adapters have no place for; ms-swift's have "
              "one (--adapter-names ms-swift), and 'shardwright merge-adapter' takes it into the "
              "base model",
              adapter.path, found);
}

// What is trained whole.
Status check_saved(const PeftAdapter& adapter, bool is_swift) {
  const LoraConfig& config = adapter.config;
  if (!adapter.rows.empty()) {
    return not_for_megatron(
        adapter, translated("trained rows of tokens, of {}", printable(adapter.rows[0].module)));
  }
  if (!adapter.saved.empty() && !is_swift) {
    return for_swift_only(adapter, translated("a whole tensor, {}", adapter.saved[0].name));
  }
  if (!config.modules_to_save.empty() && !is_swift) {
    return for_swift_only(adapter, translated("modules_to_save in {}: {}", kPeftConfigFile,
                                              name_list(config.modules_to_save)));
  }
  for (const std::string& listed : config.modules_to_save) {
    LoraConfig alone;
    alone.modules_to_save = {listed};
    const auto is_of_it = [&](const SavedTensor& saved) {
      return alone.saves(saved.name.substr(0, saved.name.rfind('.')));
    };
    if (std::ranges::any_of(adapter.saved, is_of_it)) continue;
    return fail(Code::kUnmatchedSource,
                "{}: {}: found nothing of {}, which {} lists in modules_to_save; the values that "
                "were trained are not there",
                adapter.path, adapter.weights_file, printable(listed), kPeftConfigFile);
  }
  return {};
}

// The base model's files may lie beside the config.json that was given.
void tell_gaps(const PeftAdapter& adapter, const ModelFacts& facts, Drafting& drafting) {
  const std::string& folder = drafting.request().hf_config_dir;
  const auto layers = facts.sizes.find("layers");
  std::vector<TensorDesc> tensors;
  if (const auto base = open_hf_model(folder, {}, folder)) tensors = descs_of(base->catalog);
  for (std::string& note :
       notes_on_gaps(adapter, tensors,
                     layers == facts.sizes.end() ? std::nullopt : std::optional(layers->second))) {
    drafting.tell(std::move(note));
  }
}

// What stands around the number of an expert in a module's name; nullopt for other modules.
std::optional<std::pair<std::string, std::string>> around_expert(const std::string& module) {
  constexpr std::string_view kExperts = ".experts.";
  const std::size_t at = module.find(kExperts);
  if (at == std::string::npos) return std::nullopt;
  const std::size_t number = at + kExperts.size();
  const std::size_t end = module.find_first_not_of("0123456789", number);
  if (end == number || end == std::string::npos) return std::nullopt;
  return std::pair(module.substr(0, number), module.substr(end));
}

Status check_plain(const PeftAdapter& adapter, bool is_swift) {
  const LoraConfig& config = adapter.config;
  SW_TRY(check_saved(adapter, is_swift));
  if (config.uses_dora && is_swift) {
    return fail(Code::kUnsupportedFormat,
                "{}: found magnitudes of DoRA, which ms-swift's adapters have no place for; "
                "Megatron-Bridge's have one (--adapter-names bridge), and 'shardwright "
                "merge-adapter' takes them into the base model",
                adapter.path);
  }
  if (config.is_fan_in_fan_out) return not_for_megatron(adapter, "fan_in_fan_out");
  for (const LoraModule& module : adapter.modules) {
    const std::string name = printable(module.name);
    if (module.magnitude && is_numbered_expert(module.name)) {
      return not_for_megatron(adapter, translated("the DoRA of an expert, {}", name));
    }
    if (module.is_embedding) {
      return not_for_megatron(adapter, translated("the adapter of an embedding, {}", name));
    }
    if (module.bias) return not_for_megatron(adapter, translated("a bias of lora_B, {}", name));
  }
  return {};
}

// Megatron has one tensor for the experts of a layer, so there is no leaving some out.
Status check_experts(const PeftAdapter& adapter, const ModelFacts& facts) {
  const auto count = facts.sizes.find("experts");
  if (count == facts.sizes.end()) return {};
  std::map<std::pair<std::string, std::string>, std::int64_t> found;
  std::set<std::string> names;
  for (const LoraModule& module : adapter.modules) {
    const auto around = around_expert(module.name);
    if (!around) continue;
    ++found[*around];
    names.insert(module.name);
  }
  for (const auto& [around, experts] : found) {
    if (experts >= count->second) continue;
    std::int64_t expert = 0;
    std::string name;
    do {
      name = around.first + std::to_string(expert++) + around.second;
    } while (names.contains(name));
    return fail(Code::kUnmatchedTarget,
                "{}: found nothing for {}, expected adapters for all {} experts or none: Megatron "
                "has one tensor for them",
                adapter.path, printable(name), count->second);
  }
  return {};
}

// A family's experts in one tensor have A over the inputs, turned ones over the outputs.
Status check_squares(const PeftAdapter& adapter, bool are_numbered, const Mapping& family) {
  const bool is_turned = stores_turned(family.items).value_or(false);
  const ExpertSide meant = is_turned ? ExpertSide::kOutputs : ExpertSide::kInputs;
  for (const LoraParameter& parameter : adapter.parameters) {
    if (are_numbered) {
      SW_TRY(check_one_by_one(adapter, parameter));
    } else if (is_square(adapter, parameter) && side_of_square(adapter, parameter) != meant) {
      return refuse_square(adapter, parameter);
    }
  }
  return {};
}

// Megatron has one rank and one alpha for all, but Megatron-Bridge may give experts the rank by as
// many as each token is routed to (normalize_moe_lora). Returns the rank of experts.
Result<std::int64_t> rank_of_experts(const PeftAdapter& adapter, const ModelFacts& facts,
                                     bool is_swift) {
  const LoraConfig& config = adapter.config;
  std::int64_t rank = config.rank;
  const ArgsFromConfig made = SW_TRY(args_from_hf_config(*facts.mapping, *facts.config, {}));
  const Arguments arguments(made.values.begin(), made.values.end());
  const std::int64_t routed = number_of(arguments, {"moe_router_topk"}).value_or(0);
  // Divided by the root of a rank, alpha would be another one for experts.
  if (!is_swift && !config.uses_rslora && routed > 1 && config.rank % routed == 0) {
    rank /= routed;
  }
  std::size_t less = 0;
  std::size_t whole = 0;
  for (const LoraModule& module : adapter.modules) {
    const bool is_expert = is_numbered_expert(module.name);
    const std::int64_t own = config.rank_of(module.configured);
    LoraConfig plain = config;
    plain.alpha_pattern.clear();
    const bool has_alpha = config.scale_of(module.configured) == plain.scale_of(module.configured);
    if (is_expert) ++(own == config.rank ? whole : less);
    const bool fits = own == config.rank || (is_expert && own == rank);
    if (has_alpha && fits && (less == 0 || whole == 0)) continue;
    return not_for_megatron(adapter,
                            translated("a rank or alpha of {} alone", printable(module.name)));
  }
  return less > 0 ? rank : config.rank;
}

// The names without the adapter's own name, whatever files have. Of a parameter that holds all
// experts each gets its own, unless the family has them in one tensor too.
void name_plainly(const PeftAdapter& adapter, bool are_numbered, Catalog& catalog) {
  const auto rename = [&](std::uint32_t tensor, const std::string& name) {
    const std::string& stored = adapter.catalog.tensors[tensor].desc.name;
    const auto found = std::ranges::find_if(
        catalog.tensors, [&](const StoredTensor& each) { return each.desc.name == stored; });
    if (found != catalog.tensors.end()) found->desc.name = name;
  };
  std::set<std::string_view> stored;
  for (const StoredTensor& tensor : catalog.tensors) stored.insert(tensor.desc.name);
  std::set<std::string_view> of_experts;
  std::vector<StoredTensor> experts;
  const auto take = [&](std::string_view whole, std::uint32_t part) {
    if (!stored.contains(whole)) return;  // not selected
    of_experts.insert(whole);
    experts.push_back(adapter.catalog.tensors[part]);
  };
  if (are_numbered) {
    for (const LoraModule& module : adapter.modules) {
      take(module.stored_in, module.in);
      take(module.stored_out, module.out);
    }
  } else {
    for (const LoraParameter& parameter : adapter.parameters) {
      take(adapter.catalog.tensors[parameter.stored_in].desc.name, parameter.in);
      take(adapter.catalog.tensors[parameter.stored_out].desc.name, parameter.out);
    }
  }
  std::erase_if(catalog.tensors,
                [&](const StoredTensor& tensor) { return of_experts.contains(tensor.desc.name); });
  std::ranges::move(experts, std::back_inserter(catalog.tensors));
  for (const LoraModule& module : adapter.modules) {
    if (!module.stored_in.empty()) continue;
    const std::string stem = std::string(kPeftPrefix) + module.name;
    rename(module.in, stem + ".lora_A.weight");
    rename(module.out, stem + ".lora_B.weight");
    if (module.magnitude) rename(*module.magnitude, stem + ".lora_magnitude_vector");
  }
  for (const SavedTensor& saved : adapter.saved) {
    rename(saved.tensor, std::string(kPeftPrefix) + saved.name);
  }
}

// An adapter's tensors as Megatron has them in one form.
class PeftForm {
 public:
  PeftForm(const ModelFacts& facts, Drafting& drafting) : facts_(facts), drafting_(drafting) {}

  Result<std::vector<DraftTensor>> draft(AdapterForm form) {
    const ConvertRequest& request = drafting_.request();
    const Mapping mapping = SW_TRY(adapter_mapping(
        *facts_.mapping,
        {form, request.parallel.tensor, request.parallel.expert_tensor, false, {}}));
    ModelFacts facts = facts_;
    facts.mapping = &mapping;
    facts.config_text = {};  // what it says of quantised weights is about the base's
    const LayerKeys keys =
        drafting_.traits().has_layers_apart ? LayerKeys::kAllNumbered : layer_keys_of(facts_);
    const DraftOptions options{request.dtype, keys};
    Notes about_copies;
    std::vector<QuantisedSource> none;
    Catalog catalog = drafting_.catalog;
    std::vector<DraftTensor> drafts = SW_TRY(
        draft_hf_model(facts, {options}, catalog, *drafting_.source().files, none, about_copies));
    SW_TRY(check_layer_dtypes(drafts, keys));
    for (const DraftTensor& draft : drafts) {
      if (!draft.desc.name.starts_with(kHfExtraPrefix)) continue;
      return fail(Code::kDuplicateName,
                  "tensor {}: found other values than in the other modules that Megatron fuses "
                  "with this one, expected one lora_A for all of them",
                  draft.desc.name.substr(kHfExtraPrefix.size()));
    }
    return drafts;
  }

 private:
  const ModelFacts& facts_;
  Drafting& drafting_;
};

// One adapter for a fused module where that can be, else one for each of its parts, of which DoRA
// has none.
Result<std::pair<AdapterForm, std::vector<DraftTensor>>> draft_in_a_form(const ModelFacts& facts,
                                                                         bool is_dora,
                                                                         Drafting& drafting) {
  using Made = std::pair<AdapterForm, std::vector<DraftTensor>>;
  PeftForm forms(facts, drafting);
  const bool is_swift = drafting.request().adapter_names == AdapterNames::kSwift;
  const AdapterForm form = is_swift ? AdapterForm::kSwift : AdapterForm::kFused;
  Result<std::vector<DraftTensor>> fused = forms.draft(form);
  if (fused) return Made{form, *std::move(fused)};
  if (is_swift) {
    return fail(fused.error().code,
                "{}; ms-swift has one adapter for modules that Megatron fuses; '--adapter-names "
                "bridge' can have one for each",
                fused.error().message);
  }
  if (is_dora) {
    if (fused.error().code != Code::kDuplicateName) return std::unexpected(fused.error());
    return fail(fused.error().code,
                "{}; Megatron-Bridge's DoRA has one adapter for modules that Megatron fuses",
                fused.error().message);
  }
  Result<std::vector<DraftTensor>> apart = forms.draft(AdapterForm::kCanonical);
  if (apart) return Made{AdapterForm::kCanonical, *std::move(apart)};
  return std::unexpected(std::move(apart).error());
}

bool has_experts(const std::vector<DraftTensor>& drafts) {
  return std::ranges::any_of(drafts, [](const DraftTensor& draft) {
    const auto adapter = adapter_tensor(draft.desc.name);
    return adapter && is_of_experts(*adapter);
  });
}

// The modules that are trained whole, by names that end in no other: those of layers by what they
// are called there, for stages number their own.
std::set<std::string> whole_modules(const std::vector<DraftTensor>& drafts) {
  std::set<std::string> modules;
  for (const DraftTensor& draft : drafts) {
    const auto saved = name_of_saved(draft.desc.name);
    if (!saved) continue;
    const std::string module = saved->substr(0, saved->rfind('.'));
    const auto layer = split_layer_name(module);
    modules.emplace(layer ? layer->rest : module);
  }
  return modules;
}

// In a model with experts MLPs of three kinds have modules of the same name, of which some may have
// no adapters.
std::set<std::string> megatron_modules(const std::vector<DraftTensor>& drafts,
                                       const ModelFacts& facts) {
  const auto experts = facts.sizes.find("experts");
  const bool has_kinds = experts != facts.sizes.end() && experts->second > 0;
  std::set<std::string> modules;
  for (const DraftTensor& draft : drafts) {
    const auto adapter = adapter_tensor(draft.desc.name);
    const bool is_of_mlp = adapter && adapter->module.find(".linear_fc") != std::string_view::npos;
    const auto module = adapted_module(draft.desc.name, has_kinds && is_of_mlp);
    if (module) modules.insert(*module);
  }
  return modules;
}

}  // namespace

Status draft_peft_as_megatron(Drafting& drafting) {
  const ConvertRequest& request = drafting.request();
  PreparedConversion& result = drafting.result;
  const TargetTraits& target = drafting.traits();
  if (target.has_components || (!target.has_run_config && !target.holds_state_dicts)) {
    return fail(Code::kUsage,
                "{}: found an adapter in PEFT's files, expected a model for --to {}: 'shardwright "
                "merge-adapter BASE ADAPTER OUT' adds it to its base model; --to torch_dist makes "
                "it one that Megatron trains on",
                request.input, target.name);
  }
  if (request.extend_vocab || !request.mtp_from.empty() || request.upcycle) {
    return fail(Code::kUsage,
                "{}: found an adapter, of which --extend-vocab, --mtp from= and --upcycle change "
                "nothing; leave them out",
                request.input);
  }
  const bool is_swift = request.adapter_names == AdapterNames::kSwift;
  const PeftAdapter adapter = SW_TRY(open_peft_adapter(drafting.source().location.path));
  if (std::string note = note_on_names(adapter); !note.empty()) drafting.tell(std::move(note));
  SW_TRY(check_plain(adapter, is_swift));
  SW_TRY(load_mappings(drafting));
  const ModelFacts known =
      SW_TRY(find_model_facts(request, drafting.source(), drafting.mappings, {}, result.notes));
  if (!known.config) {
    return fail(Code::kConfigMissing,
                "{}: the base model's config.json, which tells the family, is missing; give its "
                "folder with --hf-config",
                request.input);
  }
  tell_gaps(adapter, known, drafting);
  SW_TRY(check_experts(adapter, known));
  const bool are_numbered = numbers_experts(known.mapping->items);
  SW_TRY(check_squares(adapter, are_numbered, *known.mapping));
  name_plainly(adapter, are_numbered, drafting.catalog);
  ModelFacts facts = known;
  const std::int64_t of_experts = SW_TRY(rank_of_experts(adapter, known, is_swift));
  facts.sizes.insert_or_assign(std::string(kAdapterRank), adapter.config.rank);
  facts.sizes.insert_or_assign(std::string(kExpertAdapterRank), of_experts);
  auto [form, drafts] = SW_TRY(draft_in_a_form(facts, adapter.config.uses_dora, drafting));
  result.family = facts.mapping->family;
  drafting.parts.tensors = std::move(drafts);
  AdapterSettings settings;
  settings.form = form;
  settings.rank = adapter.config.rank;
  settings.alpha = adapter.config.alpha;
  settings.uses_rslora = adapter.config.uses_rslora;
  settings.uses_dora = adapter.config.uses_dora;
  settings.modules = megatron_modules(drafting.parts.tensors, known);
  settings.saved = whole_modules(drafting.parts.tensors);
  settings.has_experts = has_experts(drafting.parts.tensors);
  settings.has_less_for_experts = of_experts != adapter.config.rank;
  return add_state_of_adapter(request, known, settings, drafting.parts, result.notes);
}

Status check_adapter_names(const Drafting& drafting) {
  if (drafting.request().adapter_names == AdapterNames::kDefault) return {};
  return fail(Code::kUsage,
              "{}: --adapter-names is about an adapter in PEFT's files, and this is a {} "
              "checkpoint; leave it out",
              drafting.request().input, drafting.source().location.format);
}

}  // namespace shardwright

// SPDX-License-Identifier: Apache-2.0
#include "convert/adapter_documents.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "base/fail.h"
#include "base/text.h"
#include "convert/adapter_run.h"
#include "convert/expert_parameters.h"
#include "model/adapter_tensors.h"
#include "model/expert_parameter.h"
#include "model/module_names.h"
#include "state/document_names.h"

namespace shardwright {
namespace {

using PeftJson = nlohmann::ordered_json;

// What PEFT finds a tensor by. Models of transformers 5 have no experts one by one, but PEFT makes
// what they have of the names of files.
std::string peft_module(const Mapping& family, std::string_view name) {
  if (!is_numbered_expert(name)) return module_name(family, name);
  std::vector<ModuleWords> beginnings = family.modules;
  std::erase_if(beginnings, [](const ModuleWords& entry) { return !entry.is_of_beginning(); });
  return with_module_words(beginnings, module_name(family.parts, name));
}

// Routers are no linears in transformers but modules with a parameter.
bool is_router(std::string_view module) {
  return module.ends_with(".gate") || module.ends_with(".router");
}

// The modules that have an adapter of that rank.
std::set<std::string_view> adapted_modules(const std::vector<DraftTensor>& tensors,
                                           std::optional<std::int64_t> rank = std::nullopt) {
  constexpr std::string_view kEnd = ".lora_A.weight";
  std::set<std::string_view> modules;
  for (const DraftTensor& tensor : tensors) {
    std::string_view name = tensor.desc.name;
    if (!name.ends_with(kEnd) || is_of_expert_parameter(name)) continue;
    if (rank && tensor.desc.shape[0] != *rank) continue;
    name.remove_suffix(kEnd.size());
    modules.insert(name.substr(kPeftPrefix.size()));
  }
  return modules;
}

// The last word of each module, as PEFT takes a list of them; the whole name where other parts of
// the model have modules that are called so.
std::set<std::string> target_modules(const std::vector<DraftTensor>& tensors, bool has_others) {
  std::set<std::string> words;
  for (const std::string_view module : adapted_modules(tensors)) {
    if (is_router(module)) continue;
    words.emplace(has_others ? module : module.substr(module.rfind('.') + 1));
  }
  return words;
}

std::set<std::string> router_parameters(const std::vector<DraftTensor>& tensors) {
  std::set<std::string> parameters;
  for (const std::string_view module : adapted_modules(tensors)) {
    if (!is_router(module)) continue;
    const std::size_t word = module.rfind('.', module.rfind('.') - 1) + 1;
    parameters.insert(std::string(module.substr(word)) + ".weight");
  }
  return parameters;
}

// The modules that have a whole tensor, by their whole names: PEFT takes each module that ends so,
// and `norm` would be all norms.
std::set<std::string> saved_modules(const std::vector<DraftTensor>& tensors) {
  std::set<std::string> modules;
  for (const DraftTensor& tensor : tensors) {
    const std::string_view name = tensor.desc.name;
    if (name.find(".lora_") != std::string_view::npos) continue;
    modules.emplace(name.substr(kPeftPrefix.size(), name.rfind('.') - kPeftPrefix.size()));
  }
  return modules;
}

// Of experts with less than the rank of the others.
PeftJson rank_pattern(const AdapterRanks& ranks, const std::vector<DraftTensor>& tensors,
                      const std::set<std::string>& parameters) {
  PeftJson pattern = PeftJson::object();
  if (!ranks.experts || *ranks.experts == ranks.whole()) return pattern;
  for (const std::string_view module : adapted_modules(tensors, *ranks.experts)) {
    pattern["^" + std::string(module)] = *ranks.experts;
  }
  for (const std::string& parameter : parameters) pattern[parameter] = *ranks.experts;
  return pattern;
}

Status check_ranks(const Checkpoint& source, const AdapterRun& run, const AdapterRanks& ranks) {
  const std::int64_t told = run.rank.value_or(ranks.whole());
  for (const auto& [rank, may_be_less] :
       {std::pair(ranks.dense, false), std::pair(ranks.experts, run.has_less_for_experts)}) {
    if (!rank || *rank == told || (may_be_less && *rank < told)) continue;
    return fail(Code::kShapeMismatch, "{}: found adapters of rank {}, expected {} as {} says",
                source.location.path, *rank, told,
                run.rank ? run.told_by : translated("the rank of the other modules"));
  }
  return {};
}

Status check_told(const Checkpoint& source, const AdapterRun& run) {
  if (run.alpha) return {};
  return fail(Code::kConfigMissing,
              "{}: found adapters and nothing that tells their alpha, expected a peft section "
              "with dim and alpha in {}, as Megatron-Bridge writes it, a model_transform section "
              "with them in {}, as NeMo 2 does, or lora_alpha among the run's arguments",
              source.location.path, kRunConfigFile, kNemoContextFile);
}

Status check_magnitudes(const Checkpoint& source, const AdapterRun& run,
                        const std::vector<DraftTensor>& tensors) {
  const bool has_magnitudes = std::ranges::any_of(tensors, [](const DraftTensor& tensor) {
    return tensor.desc.name.ends_with("lora_magnitude_vector");
  });
  if (has_magnitudes == run.uses_dora) return {};
  return fail(Code::kUnsupportedFormat, "{}: found {}, expected {} by {}", source.location.path,
              has_magnitudes ? "the magnitudes of DoRA" : "no magnitudes of DoRA",
              run.uses_dora ? translated("some") : translated("none"), run.told_by);
}

// adapter_config.json. `experts`: the parameters that hold all experts of a layer.
PeftJson peft_config(const AdapterRun& run, const AdapterRanks& ranks, const Mapping& family,
                     const std::vector<DraftTensor>& tensors,
                     const std::set<std::string>& experts) {
  PeftJson config = PeftJson::object();
  config["peft_type"] = "LORA";
  config["task_type"] = "CAUSAL_LM";
  config["base_model_name_or_path"] = nullptr;
  config["r"] = ranks.whole();
  if (const auto* whole = std::get_if<std::int64_t>(&*run.alpha)) {
    config["lora_alpha"] = *whole;
  } else {
    config["lora_alpha"] = std::get<double>(*run.alpha);
  }
  PeftJson pattern = rank_pattern(ranks, tensors, experts);
  if (!pattern.empty()) config["rank_pattern"] = std::move(pattern);
  config["use_rslora"] = run.uses_rslora;
  config["use_dora"] = run.uses_dora;
  // PEFT makes parameters of what it finds of experts by their last words.
  const bool has_parts = !family.parts.empty() || !family.alike.empty();
  const bool has_others = has_parts && (!ranks.experts || !experts.empty());
  config["target_modules"] = target_modules(tensors, has_others);
  std::set<std::string> parameters = router_parameters(tensors);
  parameters.insert(experts.begin(), experts.end());
  if (!parameters.empty()) config["target_parameters"] = parameters;
  if (const std::set<std::string> saved = saved_modules(tensors); !saved.empty()) {
    config["modules_to_save"] = saved;
  }
  // Models of transformers 5 have all experts in one parameter, and routers are parameters, whose
  // adapters PEFT refuses to drop.
  const bool drops = run.dropout != 0.0 && !ranks.experts && parameters.empty();
  config["lora_dropout"] = drops ? run.dropout : 0.0;
  config["bias"] = "none";
  config["fan_in_fan_out"] = false;
  config["init_lora_weights"] = true;
  config["inference_mode"] = true;
  return config;
}

void tell_what_peft_lacks(const AdapterRun& run, const AdapterRanks& ranks, const PeftJson& config,
                          bool has_experts_in_one, Notes& notes) {
  if (run.dropout != 0.0 && config["lora_dropout"] == 0.0) {
    notes.push_back(
        translated("lora_dropout is 0, not the run's {}: PEFT has no dropout of experts or routers",
                   run.dropout));
  }
  if (ranks.experts && !has_experts_in_one) {
    notes.push_back(translated(
        "experts have their adapters one by one; with transformers 5 PEFT finds those of models "
        "that it has rules for (Mixtral, Qwen2-MoE and the like) only, and vLLM or 'shardwright "
        "merge-adapter' those of any"));
  }
}

}  // namespace

Status check_changes_of_adapters(const ConvertRequest& request) {
  if (request.quantise == WeightForm::kPlain && !request.extend_vocab && request.mtp_from.empty()) {
    return {};
  }
  return fail(Code::kUsage,
              "{}: found adapters, which --quantise, --extend-vocab and --mtp from= change nothing "
              "of; convert them without, 'shardwright merge-adapter' them into the base and "
              "convert that",
              request.input);
}

Status add_adapter_documents(const Checkpoint& source, const AdapterRanks& ranks,
                             const Mapping& family, TargetParts& parts, Notes& notes) {
  for (DraftTensor& tensor : parts.tensors) {
    const std::string_view name = std::string_view(tensor.desc.name).substr(kPeftPrefix.size());
    tensor.desc.name = std::string(kPeftPrefix) + peft_module(family, name);
  }
  const AdapterRun run = SW_TRY(read_adapter_run(source));
  SW_TRY(check_told(source, run));
  SW_TRY(check_ranks(source, run, ranks));
  SW_TRY(check_magnitudes(source, run, parts.tensors));
  const std::set<std::string> experts = expert_parameters(parts.tensors);
  const PeftJson config = peft_config(run, ranks, family, parts.tensors, experts);
  tell_what_peft_lacks(run, ranks, config, !experts.empty(), notes);
  store_expert_parameters(parts.tensors);
  parts.files.push_back({"adapter_config.json", config.dump(2) + "\n"});
  parts.is_adapter = true;
  notes.push_back(
      translated("a low-rank adapter of rank {} is written as PEFT's files; its alpha is that of "
                 "{}. Its base model is not in it: 'shardwright merge-adapter' puts both together",
                 ranks.whole(), run.told_by));
  return {};
}

}  // namespace shardwright

// SPDX-License-Identifier: Apache-2.0
#include "convert/adapter_documents.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "base/fail.h"
#include "base/text.h"
#include "convert/expert_parameters.h"
#include "model/adapter_tensors.h"
#include "state/recorded_run.h"
#include "state/run_config.h"

namespace shardwright {
namespace {

using PeftJson = nlohmann::ordered_json;

constexpr std::string_view kRunFile = "run_config.yaml";

/// What a run says of its adapters.
struct AdapterRun {
  std::optional<std::int64_t> rank;
  std::optional<ArgValue> alpha;
  double dropout = 0.0;
  bool uses_rslora = false;
  bool uses_dora = false;
  bool has_less_for_experts = false;
  std::string told_by;
};

std::optional<ArgValue> number_in(const Arguments& arguments, std::string_view name) {
  const auto found = arguments.find(name);
  if (found == arguments.end()) return std::nullopt;
  const bool is_number = std::holds_alternative<std::int64_t>(found->second) ||
                         std::holds_alternative<double>(found->second);
  return is_number ? std::optional(found->second) : std::nullopt;
}

double as_real(const ArgValue& value) {
  const auto* whole = std::get_if<std::int64_t>(&value);
  return whole != nullptr ? static_cast<double>(*whole) : std::get<double>(value);
}

// Megatron-Bridge's: the class, its rank and alpha.
Status read_bridge(const std::string& yaml, AdapterRun& run) {
  const Result<Arguments> section = read_model_section(yaml, "peft", kRunFile);
  if (!section) return {};  // a run without adapters of Bridge's
  const auto kind = section->find("_target_");
  const auto* text = kind == section->end() ? nullptr : std::get_if<std::string>(&kind->second);
  if (text != nullptr) {
    const std::string name = text->substr(text->rfind('.') + 1);
    if (name != "LoRA" && name != "CanonicalLoRA" && name != "DoRA" && name != "VLMLoRA") {
      return fail(Code::kUnsupportedFormat,
                  "{}: found peft of the kind {}, expected LoRA, CanonicalLoRA or DoRA", kRunFile,
                  printable(name));
    }
    run.uses_dora = name == "DoRA";
  }
  run.rank = number_of(*section, {"dim"});
  run.alpha = number_in(*section, "alpha");
  const auto less = section->find("normalize_moe_lora");
  run.has_less_for_experts = less != section->end() && less->second == ArgValue{true};
  if (const auto dropout = number_in(*section, "dropout")) run.dropout = as_real(*dropout);
  run.told_by = std::string(kRunFile) + translated("'s peft section");
  return {};
}

// ms-swift's arguments are called as PEFT's settings.
void read_arguments(const Arguments& arguments, AdapterRun& run) {
  run.rank = number_of(arguments, {"lora_rank"});
  run.alpha = number_in(arguments, "lora_alpha");
  const auto scale = arguments.find("use_rslora");
  run.uses_rslora = scale != arguments.end() && scale->second == ArgValue{true};
  run.told_by = "the run's arguments";
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
    words.emplace(has_others ? module : module.substr(module.rfind('.') + 1));
  }
  return words;
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

}  // namespace

Status add_adapter_documents(const Checkpoint& source, const AdapterRanks& ranks,
                             std::span<const ModelPart> model_parts, TargetParts& parts,
                             Notes& notes) {
  for (DraftTensor& tensor : parts.tensors) {
    const std::string_view name = std::string_view(tensor.desc.name).substr(kPeftPrefix.size());
    tensor.desc.name = std::string(kPeftPrefix) + module_name(model_parts, name);
  }
  AdapterRun run;
  if (!source.run_config.empty()) SW_TRY(read_bridge(source.run_config, run));
  if (!run.alpha) read_arguments(source.arguments, run);
  if (!run.alpha) {
    return fail(Code::kConfigMissing,
                "{}: found adapters and nothing that tells their alpha, expected a peft section "
                "with dim and alpha in {}, as Megatron-Bridge writes it, or lora_alpha among the "
                "run's arguments",
                source.location.path, kRunFile);
  }
  SW_TRY(check_ranks(source, run, ranks));
  const bool has_magnitudes = std::ranges::any_of(parts.tensors, [](const DraftTensor& tensor) {
    return tensor.desc.name.ends_with("lora_magnitude_vector");
  });
  if (has_magnitudes != run.uses_dora) {
    return fail(Code::kUnsupportedFormat, "{}: found {}, expected {} by {}", source.location.path,
                has_magnitudes ? "the magnitudes of DoRA" : "no magnitudes of DoRA",
                run.uses_dora ? translated("some") : translated("none"), run.told_by);
  }
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
  const std::set<std::string> parameters = expert_parameters(parts.tensors);
  PeftJson pattern = rank_pattern(ranks, parts.tensors, parameters);
  if (!pattern.empty()) config["rank_pattern"] = std::move(pattern);
  config["use_rslora"] = run.uses_rslora;
  config["use_dora"] = run.uses_dora;
  // PEFT makes parameters of what it finds of experts by their last words.
  const bool has_others = !model_parts.empty() && (!ranks.experts || !parameters.empty());
  config["target_modules"] = target_modules(parts.tensors, has_others);
  if (!parameters.empty()) config["target_parameters"] = parameters;
  if (const std::set<std::string> saved = saved_modules(parts.tensors); !saved.empty()) {
    config["modules_to_save"] = saved;
  }
  // Models of transformers 5 have all experts in one parameter, whose adapters PEFT refuses to
  // drop.
  const bool drops = run.dropout != 0.0 && !ranks.experts;
  if (run.dropout != 0.0 && !drops) {
    notes.push_back(translated(
        "lora_dropout is 0, not the run's {}: PEFT has no dropout of experts", run.dropout));
  }
  if (ranks.experts && parameters.empty()) {
    notes.push_back(translated(
        "experts have their adapters one by one; with transformers 5 PEFT finds those of models "
        "that it has rules for (Mixtral, Qwen2-MoE and the like) only, and vLLM or 'shardwright "
        "merge-adapter' those of any"));
  }
  config["lora_dropout"] = drops ? run.dropout : 0.0;
  config["bias"] = "none";
  config["fan_in_fan_out"] = false;
  config["init_lora_weights"] = true;
  config["inference_mode"] = true;
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

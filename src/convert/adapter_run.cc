// SPDX-License-Identifier: Apache-2.0
#include "convert/adapter_run.h"

#include "base/fail.h"
#include "base/text.h"
#include "model/arguments.h"
#include "state/document_names.h"
#include "state/recorded_run.h"
#include "state/run_config.h"

namespace shardwright {
namespace {

std::optional<ArgValue> number_in(const Arguments& arguments, std::string_view name) {
  const auto found = arguments.find(name);
  if (found == arguments.end()) return std::nullopt;
  const bool is_number = std::holds_alternative<std::int64_t>(found->second) ||
                         std::holds_alternative<double>(found->second);
  return is_number ? std::optional(found->second) : std::nullopt;
}

// What Megatron-Bridge and NeMo 2 build adapters by: the class, its rank and alpha.
Status read_builder(const Arguments& section, std::string_view file, AdapterRun& run) {
  const auto kind = section.find("_target_");
  const auto* text = kind == section.end() ? nullptr : std::get_if<std::string>(&kind->second);
  if (text != nullptr) {
    const std::string name = text->substr(text->rfind('.') + 1);
    if (name != "LoRA" && name != "CanonicalLoRA" && name != "DoRA" && name != "VLMLoRA") {
      return fail(Code::kUnsupportedFormat,
                  "{}: found peft of the kind {}, expected LoRA, CanonicalLoRA or DoRA", file,
                  printable(name));
    }
    run.uses_dora = name == "DoRA";
  }
  run.rank = number_of(section, {"dim"});
  run.alpha = number_in(section, "alpha");
  run.has_less_for_experts = is_true(section, "normalize_moe_lora");
  if (const auto dropout = number_in(section, "dropout")) run.dropout = as_real(*dropout);
  return {};
}

Status read_bridge(const std::string& yaml, AdapterRun& run) {
  const Result<Arguments> section = read_model_section(yaml, "peft", kRunConfigFile);
  if (!section) return {};  // a run without adapters of Bridge's
  run.told_by = std::string(kRunConfigFile) + translated("'s peft section");
  return read_builder(*section, kRunConfigFile, run);
}

// What transforms a model may be no adapter's class at all.
Status read_nemo(const Arguments& arguments, AdapterRun& run) {
  Arguments section;
  for (auto at = arguments.lower_bound(kNemoTransform); at != arguments.end(); ++at) {
    if (!at->first.starts_with(kNemoTransform)) break;
    section.emplace(at->first.substr(kNemoTransform.size()), at->second);
  }
  if (!section.contains("alpha")) return {};
  run.told_by = std::string(kNemoContextFile) + translated("'s model_transform section");
  return read_builder(section, kNemoContextFile, run);
}

// ms-swift's arguments are called as PEFT's settings.
void read_arguments(const Arguments& arguments, AdapterRun& run) {
  run.rank = number_of(arguments, {"lora_rank"});
  run.alpha = number_in(arguments, "lora_alpha");
  run.uses_rslora = is_true(arguments, "use_rslora");
  run.told_by = "the run's arguments";
}

}  // namespace

double as_real(const ArgValue& number) {
  const auto* whole = std::get_if<std::int64_t>(&number);
  return whole != nullptr ? static_cast<double>(*whole) : std::get<double>(number);
}

Result<AdapterRun> read_adapter_run(const Checkpoint& source) {
  AdapterRun run;
  if (!source.run_config.empty()) SW_TRY(read_bridge(source.run_config, run));
  if (!run.alpha) SW_TRY(read_nemo(source.arguments, run));
  if (!run.alpha) read_arguments(source.arguments, run);
  return run;
}

}  // namespace shardwright

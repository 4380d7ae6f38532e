// SPDX-License-Identifier: Apache-2.0
#include "convert/adapter_state.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "base/translated.h"
#include "convert/bridge_config.h"
#include "convert/megatron_state.h"
#include "model/config.h"
#include "state/common_state.h"
#include "state/document_names.h"

namespace shardwright {
namespace {

using SwiftJson = nlohmann::ordered_json;

// Whole numbers as such: both trainers declare alpha as one.
ArgValue number_for(double value) {
  constexpr double kMostExact = 1 << 30;
  const double whole = std::round(value);
  if (value == whole && std::abs(value) < kMostExact) return static_cast<std::int64_t>(value);
  return value;
}

std::string text_of(const ArgValue& number) {
  const auto* whole = std::get_if<std::int64_t>(&number);
  return whole != nullptr ? std::to_string(*whole) : fmt::format("{}", std::get<double>(number));
}

// Megatron-Bridge knows no rsLoRA, whose scale is alpha by the root of the rank.
std::string peft_section(const AdapterSettings& settings, Notes& notes) {
  double alpha = settings.alpha;
  if (settings.uses_rslora) {
    alpha *= std::sqrt(static_cast<double>(settings.rank));
    notes.push_back(translated(
        "use_rslora: Megatron-Bridge divides alpha by the rank, so alpha is {} where it was {}",
        text_of(number_for(alpha)), text_of(number_for(settings.alpha))));
  }
  const bool is_apart = settings.form == AdapterForm::kCanonical;
  const std::string_view kind = is_apart             ? "canonical_lora.CanonicalLoRA"
                                : settings.uses_dora ? "dora.DoRA"
                                                     : "lora.LoRA";
  std::string experts;
  if (settings.has_experts) experts += "  share_expert_adapters: false\n";
  if (settings.has_less_for_experts) experts += "  normalize_moe_lora: true\n";
  std::string text = fmt::format(
      "peft:\n  _target_: megatron.bridge.peft.{}\n  dim: {}\n  alpha: {}\n  dropout: 0.0\n{}"
      "  target_modules:\n",
      kind, settings.rank, text_of(number_for(alpha)), experts);
  for (const std::string& module : settings.modules) {
    // With a dot it is the end of a name, which Bridge takes behind a star.
    const bool is_end = module.find('.') != std::string::npos;
    text += is_end ? fmt::format("  - '*.{}'\n", module) : fmt::format("  - {}\n", module);
  }
  return text;
}

// What ms-swift reads beside the tracker, see MegatronArguments.load_args_config.
std::string swift_settings(const AdapterSettings& settings) {
  SwiftJson json = SwiftJson::object();
  json["tuner_type"] = "lora";
  json["task_type"] = "causal_lm";
  json["lora_rank"] = settings.rank;
  const ArgValue alpha = number_for(settings.alpha);
  if (const auto* whole = std::get_if<std::int64_t>(&alpha)) {
    json["lora_alpha"] = *whole;
  } else {
    json["lora_alpha"] = settings.alpha;
  }
  json["lora_dropout"] = 0.0;
  json["use_rslora"] = settings.uses_rslora;
  json["target_modules"] = settings.modules;
  if (!settings.saved.empty()) json["modules_to_save"] = settings.saved;
  return json.dump(2) + "\n";
}

}  // namespace

Status add_state_of_adapter(const ConvertRequest& request, const ModelFacts& facts,
                            const AdapterSettings& settings, TargetParts& parts, Notes& notes) {
  parts.folder = "iter_0000000/";
  ArgsFromConfig made = SW_TRY(args_from_hf_config(*facts.mapping, *facts.config, {}));
  Arguments arguments(made.values.begin(), made.values.end());
  for (std::string& note : made.notes) notes.push_back(std::move(note));
  SW_TRY(add_layout_arguments(request.parallel, arguments, parts));
  for (const auto& [name, value] : parts.layout) arguments.insert_or_assign(name, value);
  const bool is_swift = settings.form == AdapterForm::kSwift;
  if (is_swift) {
    arguments.insert_or_assign("lora_rank", settings.rank);
    arguments.insert_or_assign("lora_alpha", number_for(settings.alpha));
    arguments.insert_or_assign("use_rslora", settings.uses_rslora);
  }
  const std::vector<std::pair<std::string, ArgValue>> list(arguments.begin(), arguments.end());
  parts.spec = ModuleSpec::kTransformerEngine;
  parts.common_state = SW_TRY(new_common_state(list, 0, has_numbered_layers(parts)));
  parts.arguments = arguments;
  parts.tracker = "0";
  if (is_swift) {
    parts.files.push_back({"args.json", swift_settings(settings)});
    return {};
  }
  std::string config = SW_TRY(new_run_config(facts, list, notes));
  parts.files.push_back(
      {fmt::format("{}{}", parts.folder, kRunConfigFile), config + peft_section(settings, notes)});
  return {};
}

}  // namespace shardwright

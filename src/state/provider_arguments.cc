// SPDX-License-Identifier: Apache-2.0
#include "state/provider_arguments.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "model/arguments.h"

namespace shardwright {
namespace {

// One setting under two names.
struct SettingName {
  std::string_view setting;
  std::string_view argument;
};

constexpr std::array kProviderNames = {
    SettingName{"rope_scaling", "use_rope_scaling"},
    SettingName{"seq_len_interpolation_factor", "rotary_seq_len_interpolation_factor"},
};

// Those of NeMo 2's Llama31Config, which scales whatever they are and has Megatron's defaults for
// those that are not said. Of a factor alone nothing tells what it scales.
constexpr SettingName kLlama31Factor = {"scale_factor", "rope_scaling_factor"};
constexpr std::array kLlama31Names = {
    SettingName{"low_freq_factor", "rope_scaling_low_freq_factor"},
    SettingName{"high_freq_factor", "rope_scaling_high_freq_factor"},
    SettingName{"old_context_len", "rope_scaling_original_max_position_embeddings"},
};

void add(const SettingName& name, Arguments& settings) {
  const auto found = settings.find(name.setting);
  if (found == settings.end() || std::holds_alternative<std::monostate>(found->second)) return;
  settings.emplace(name.argument, ArgValue(found->second));
}

// Gemma 3's providers scale positions of layers with whole attention linearly by what other ones
// take for Llama 3's factor; 1 scales nothing.
void add_scaling_of_gemma3(Arguments& settings) {
  const auto target = settings.find("_target_");
  const auto* const path =
      target == settings.end() ? nullptr : std::get_if<std::string>(&target->second);
  if (path == nullptr || !path->substr(path->rfind('.') + 1).starts_with("Gemma3")) return;
  const auto factor = settings.find("rope_scaling_factor");
  if (factor == settings.end() || same_value(factor->second, ArgValue{1.0})) return;
  add({"rope_scaling_factor", "rotary_seq_len_interpolation_factor"}, settings);
}

// Functions that are flags in Megatron-LM. Gates have none here: `gated_linear_unit` is beside
// them.
constexpr std::array kFlagsOfFunctions = {
    SettingName{"squared_relu", "squared_relu"},
    SettingName{"fast_gelu", "openai_gelu"},
    SettingName{"openai_gelu", "openai_gelu"},
};

}  // namespace

void add_arguments_of_provider(Arguments& settings) {
  for (const SettingName& name : kProviderNames) add(name, settings);
  add_scaling_of_gemma3(settings);
  const bool scales_rope = std::ranges::any_of(kLlama31Names, [&](const SettingName& name) {
    return find_set(settings, name.setting) != nullptr;
  });
  if (scales_rope) {
    add(kLlama31Factor, settings);
    for (const SettingName& name : kLlama31Names) add(name, settings);
    settings.emplace("use_rope_scaling", true);
  }
  const auto function = settings.find("activation_func._target_");
  if (function == settings.end()) return;
  const auto* const path = std::get_if<std::string>(&function->second);
  if (path == nullptr) return;
  const std::string name = path->substr(path->rfind('.') + 1);
  for (const SettingName& flag : kFlagsOfFunctions) {
    if (flag.setting == name) settings.emplace(flag.argument, true);
  }
}

}  // namespace shardwright

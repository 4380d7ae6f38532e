// SPDX-License-Identifier: Apache-2.0
#include "model/activation.h"

#include <algorithm>
#include <array>
#include <string>

#include "model/arguments.h"

namespace shardwright {
namespace {

// One activation under two names.
struct ActivationName {
  std::string_view name;
  std::string_view meaning;
};

// Flags of Megatron-LM and its forks, in the order in which it asks for them.
constexpr std::array kActivationFlags = {
    ActivationName{"quick_geglu", "quick_gelu"},
    ActivationName{"swiglu", "silu"},
    ActivationName{"squared_relu", "relu2"},
    ActivationName{"geglu", "gelu"},
    ActivationName{"reglu", "relu"},
};

// Functions of torch, Megatron-Core and transformers, and NeMo 1's words.
constexpr std::array kActivationNames = {
    ActivationName{"silu", "silu"},          ActivationName{"swish", "silu"},
    ActivationName{"gelu", "gelu"},          ActivationName{"fast_gelu", "gelu"},
    ActivationName{"openai_gelu", "gelu"},   ActivationName{"gelu_new", "gelu"},
    ActivationName{"gelu_fast", "gelu"},     ActivationName{"gelu_pytorch_tanh", "gelu"},
    ActivationName{"relu", "relu"},          ActivationName{"relu2", "relu2"},
    ActivationName{"squared_relu", "relu2"}, ActivationName{"quick_gelu", "quick_gelu"},
};

std::optional<std::string_view> meaning_of(const ArgValue* value) {
  const auto* const text = value == nullptr ? nullptr : std::get_if<std::string>(value);
  if (text == nullptr) return std::nullopt;
  const std::string_view name = std::string_view(*text).substr(text->rfind('.') + 1);
  const auto found = std::ranges::find(kActivationNames, name, &ActivationName::name);
  return found == kActivationNames.end() ? std::nullopt : std::optional(found->meaning);
}

}  // namespace

std::optional<std::string_view> activation_of_run(const Arguments& args) {
  for (const std::string_view name : {"activation_func._target_", "activation_func"}) {
    if (const ArgValue* const function = find_set(args, name)) return meaning_of(function);
  }
  for (const ActivationName& flag : kActivationFlags) {
    if (is_true(args, flag.name)) return flag.meaning;
  }
  return meaning_of(find_set(args, "activation"));
}

std::optional<std::string_view> activation_of_config(const Mapping& mapping, const Arguments& hf) {
  // x * sigmoid(1.702 x), which such configs go on to call silu.
  const bool has_scaled_gate = std::ranges::any_of(mapping.config, [](const ConfigRule& rule) {
    return !rule.hf.empty() && rule.hf[0] == "swiglu_alpha";
  });
  if (has_scaled_gate) return "quick_gelu";
  for (const std::string_view key : {"hidden_act", "hidden_activation", "mlp_hidden_act"}) {
    if (const ArgValue* const value = find_set(hf, key)) return meaning_of(value);
  }
  return std::nullopt;
}

std::optional<bool> states_gate(const Arguments& args) {
  std::optional<bool> is_gated;
  for (const std::string_view name : kGateFlags) {
    if (const auto flag = find_flag(args, name)) is_gated = is_gated.value_or(false) || *flag;
  }
  return is_gated;
}

}  // namespace shardwright

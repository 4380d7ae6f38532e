// SPDX-License-Identifier: Apache-2.0
#include "model/unsaid_arguments.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/fail.h"
#include "base/translated.h"
#include "model/config_rules.h"
#include "model/config_values.h"

namespace shardwright {
namespace {

// What an argument is where it changes nothing, besides None.
enum class Neutral : std::uint8_t {
  kNone,     // there is no such value
  kOff,      // false, 0 and lists of zeros
  kOne,      // a factor or a number of groups
  kNoWindow  // lists of -1 or 0
};

struct ComputingArgument {
  std::string_view name;
  Neutral neutral = Neutral::kNone;
  bool is_of_experts = false;
  std::string_view usual = {};  // the text that changes nothing
};

// Of Megatron-LM, of Megatron-Core's configuration and of Megatron-Bridge's providers: what changes
// the numbers and, as a rule, no name or shape. What rules of all families read is not among them.
constexpr std::array kComputingArguments = {
    ComputingArgument{"activation_func_clamp_value", Neutral::kOff},
    ComputingArgument{"alibi_bias_max", Neutral::kOff},
    ComputingArgument{"apply_layernorm_1p", Neutral::kOff},
    ComputingArgument{"apply_residual_connection_post_layernorm", Neutral::kOff},
    ComputingArgument{"attention_chunk_size", Neutral::kOff},
    ComputingArgument{"attention_in_multiplier", Neutral::kOne},
    ComputingArgument{"attention_out_multiplier", Neutral::kOne},
    ComputingArgument{"attention_output_gate", Neutral::kOff},
    ComputingArgument{"attention_value_scale", Neutral::kOne},
    ComputingArgument{"attn_clip_qkv", Neutral::kOff},
    ComputingArgument{"attn_logit_softcapping", Neutral::kOff},
    ComputingArgument{"clip_qkv", Neutral::kOff},
    ComputingArgument{"depth_scaled_residual", Neutral::kOff},
    ComputingArgument{"dsa_indexer_rope_interleaved", Neutral::kNone},
    ComputingArgument{"embedding_multiplier", Neutral::kOne},
    ComputingArgument{"final_logit_softcapping", Neutral::kOff},
    ComputingArgument{"glu_linear_offset", Neutral::kOff},
    ComputingArgument{"key_multiplier", Neutral::kOne},
    ComputingArgument{"layernorm_zero_centered_gamma", Neutral::kOff},
    ComputingArgument{"llama_4_scaling_beta", Neutral::kOff},
    ComputingArgument{"lm_head_multiplier", Neutral::kOne},
    ComputingArgument{"logit_scale", Neutral::kOne},
    ComputingArgument{"logits_scaling", Neutral::kOne},
    ComputingArgument{"moe_apply_probs_on_input", Neutral::kOff, true},
    ComputingArgument{"moe_router_group_topk", Neutral::kOne, true},
    ComputingArgument{"moe_router_logit_softcapping", Neutral::kOff, true},
    ComputingArgument{"moe_router_num_groups", Neutral::kOne, true},
    ComputingArgument{"moe_router_pre_softmax", Neutral::kOff, true},
    ComputingArgument{"moe_router_score_function", Neutral::kNone, true, "softmax"},
    ComputingArgument{"moe_router_topk_limited_devices", Neutral::kOff, true},
    ComputingArgument{"moe_router_topk_scaling_factor", Neutral::kOne, true},
    ComputingArgument{"mup_enabled", Neutral::kOff},
    ComputingArgument{"no_rope_freq", Neutral::kOff},
    ComputingArgument{"output_multiplier", Neutral::kOne},
    ComputingArgument{"parallel_attn", Neutral::kOff},
    ComputingArgument{"qk_l2_norm", Neutral::kOff},
    ComputingArgument{"qk_scale_factor", Neutral::kOne},
    ComputingArgument{"residual_multiplier", Neutral::kOne},
    ComputingArgument{"rope_local_base_freq", Neutral::kNone},
    ComputingArgument{"rope_scaling_type", Neutral::kNone},
    ComputingArgument{"rotary_interleaved", Neutral::kOff},
    ComputingArgument{"rotary_percent", Neutral::kOne},
    ComputingArgument{"rotary_seq_len_interpolation_factor", Neutral::kOne},
    ComputingArgument{"scale_depth", Neutral::kNone},
    ComputingArgument{"scale_factor", Neutral::kOne},
    ComputingArgument{"scale_emb", Neutral::kOne},
    ComputingArgument{"scale_embeddings_by_hidden_size", Neutral::kOff},
    ComputingArgument{"sliding_window_rope_base", Neutral::kNone},
    ComputingArgument{"softmax_scale", Neutral::kNone},
    ComputingArgument{"softmax_type", Neutral::kNone, false, "vanilla"},
    ComputingArgument{"ssm_in_multiplier", Neutral::kOne},
    ComputingArgument{"ssm_out_multiplier", Neutral::kOne},
    ComputingArgument{"swa_rotary_base", Neutral::kNone},
    ComputingArgument{"swiglu_limits", Neutral::kOff},
    ComputingArgument{"use_bidirectional_attention", Neutral::kOff},
    ComputingArgument{"use_mup", Neutral::kOff},
    ComputingArgument{"use_parallel_residual", Neutral::kOff},
    ComputingArgument{"use_rope_scaling", Neutral::kOff},
    ComputingArgument{"window_size", Neutral::kNoWindow},
};

// Flags, numbers and lists of them; texts and what is not a number have none.
std::optional<std::vector<double>> numbers_of(const ArgValue& value) {
  if (const auto* flag = std::get_if<bool>(&value)) return std::vector{*flag ? 1.0 : 0.0};
  if (const auto* number = std::get_if<std::int64_t>(&value)) {
    return std::vector{static_cast<double>(*number)};
  }
  if (const auto* real = std::get_if<double>(&value)) return std::vector{*real};
  if (const auto* reals = std::get_if<std::vector<double>>(&value)) return *reals;
  const auto* list = std::get_if<std::vector<std::int64_t>>(&value);
  if (list == nullptr) return std::nullopt;
  return std::vector<double>(list->begin(), list->end());
}

bool is_neutral(Neutral neutral, const ArgValue& value) {
  const auto numbers = numbers_of(value);
  if (!numbers || neutral == Neutral::kNone) return false;
  return std::ranges::all_of(*numbers, [&](double number) {
    switch (neutral) {
      case Neutral::kNone:
        return false;
      case Neutral::kOff:
        return number == 0.0;
      case Neutral::kOne:
        return number == 1.0;
      case Neutral::kNoWindow:
        return number == 0.0 || number == -1.0;
    }
    return false;
  });
}

bool is_neutral(const ComputingArgument& argument, const ArgValue& value) {
  if (const auto* text = std::get_if<std::string>(&value)) return *text == argument.usual;
  return is_neutral(argument.neutral, value);
}

// What attention divides by anyway, as a configuration may spell out.
bool is_usual_scale(const ArgValue& value, const Arguments& args) {
  const ArgValue* const width = find_set(args, "kv_channels");
  const auto* const channels = width == nullptr ? nullptr : std::get_if<std::int64_t>(width);
  const auto* const scale = std::get_if<double>(&value);
  if (channels == nullptr || scale == nullptr || *channels <= 0) return false;
  constexpr double kRounding = 1e-6;
  return std::abs(*scale * std::sqrt(static_cast<double>(*channels)) - 1.0) < kRounding;
}

bool spells(const std::vector<std::string>& spelled, std::string_view argument) {
  return std::ranges::any_of(
      spelled, [&](const std::string& name) { return flag_name(name).name == argument; });
}

bool has_any_experts(const Arguments& args) {
  return std::ranges::any_of(std::array{"num_experts", "num_moe_experts"}, [&](const char* name) {
    const ArgValue* const value = find_set(args, name);
    return value != nullptr && !is_neutral(Neutral::kOff, *value);
  });
}

// When the softmax comes says nothing where there is none.
bool has_other_scores(const Arguments& args) {
  const ArgValue* const score = find_set(args, "moe_router_score_function");
  return score != nullptr && !same_value(*score, ArgValue{std::string("softmax")});
}

// The family's own value where it has one and config.json can't say another; `reads` tells whether
// any rule takes the argument.
const ArgValue* constant_of(const Mapping& mapping, std::string_view argument, bool& reads) {
  for (const SizeRule& rule : mapping.sizes) reads |= spells(rule.args, argument);
  const ArgValue* constant = nullptr;
  for (const ConfigRule& rule : mapping.config) {
    if (!spells(rule.args, argument)) continue;
    reads = true;
    const bool is_constant = rule.value && rule.hf.empty();
    if (!is_constant) return nullptr;
    constant = &*rule.value;
  }
  return constant;
}

// What computes nothing in a model without rotary embedding, or without such indexers.
bool is_of_modules(std::string_view name) {
  return name == "rotary_percent" || name == "dsa_indexer_rope_interleaved";
}

// Whether some layer is left without the window that others have.
bool leaves_whole_layers(const ArgValue& frequency, const Arguments& args) {
  if (const auto* list = std::get_if<std::vector<std::int64_t>>(&frequency)) {
    return std::ranges::find(*list, 0) != list->end();
  }
  const auto* period = std::get_if<std::int64_t>(&frequency);
  const ArgValue* layers = find_set(args, "num_layers");
  return period == nullptr || layers == nullptr || *period <= whole_or(layers, *period);
}

// Families whose config.json gives all layers the window have no word for those without it.
Status check_windowed_layers(const Mapping& mapping, const Arguments& args) {
  constexpr std::string_view kFrequency = "window_attn_skip_freq";
  const ArgValue* const window = find_set(args, "window_size");
  const ArgValue* const frequency = find_set(args, kFrequency);
  if (window == nullptr || frequency == nullptr) return {};
  if (is_neutral(Neutral::kNoWindow, *window) || !leaves_whole_layers(*frequency, args)) return {};
  const auto reads = [&](const auto& rule) { return spells(rule.args, kFrequency); };
  if (std::ranges::any_of(mapping.sizes, reads) || std::ranges::any_of(mapping.config, reads)) {
    return {};
  }
  return unsaid_argument(kFrequency, *frequency, mapping.family);
}

bool turns_channels_by(const ArgValue& positions) {
  const auto* const kind = std::get_if<std::string>(&positions);
  return kind != nullptr && (*kind == "rope" || *kind == "yarn" || *kind == "mrope");
}

// A rotary embedding has no tensors, so a family without one looks the same.
Status check_rotation(const Mapping& mapping, const Arguments& args) {
  constexpr std::string_view kName = "position_embedding_type";
  const ArgValue* const value = find_set(args, kName);
  bool reads = false;
  const ArgValue* const constant = constant_of(mapping, kName, reads);
  if (value == nullptr || constant == nullptr) return {};
  if (!turns_channels_by(*value) || turns_channels_by(*constant)) return {};
  return unsaid_argument(kName, *value, mapping.family);
}

}  // namespace

std::unexpected<Error> unsaid_argument(std::string_view name, const ArgValue& value,
                                       std::string_view family) {
  return fail(Code::kConfigMissing,
              "the run's arguments say {} = {}, which no config.json of family {} says; give the "
              "true one with --hf-config, or name another family with --family",
              name, to_string(value), family);
}

Status check_unsaid_arguments(const Mapping& mapping, const Arguments& args) {
  SW_TRY(check_windowed_layers(mapping, args));
  const bool has_experts = has_any_experts(args);
  for (const ComputingArgument& each : kComputingArguments) {
    const ArgValue* const value = find_set(args, each.name);
    if (value == nullptr || (each.is_of_experts && !has_experts)) continue;
    if (each.name == "softmax_scale" && is_usual_scale(*value, args)) continue;
    // NeMo's, which is there under Megatron's name where its other settings tell what it scales;
    // of pictures too.
    const bool may_scale = mapping.config_section.empty() && !is_true(args, "use_rope_scaling");
    if (each.name == "scale_factor" && !may_scale) continue;
    if (each.name == "moe_router_pre_softmax" && has_other_scores(args)) continue;
    bool reads = std::ranges::any_of(
        mapping.needs_args, [&](const NeededArg& needed) { return needed.name == each.name; });
    const ArgValue* const constant = constant_of(mapping, each.name, reads);
    if (is_of_modules(each.name) && !reads) continue;
    const bool is_off = is_neutral(each, *value);
    const bool is_said = constant == nullptr ? reads || is_off
                                             : same_value(*constant, *value) ||
                                                   (is_off && is_neutral(each, *constant));
    if (is_said) continue;
    return unsaid_argument(each.name, *value, mapping.family);
  }
  return check_rotation(mapping, args);
}

}  // namespace shardwright

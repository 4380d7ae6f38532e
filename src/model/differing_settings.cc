// SPDX-License-Identifier: Apache-2.0
#include "model/differing_settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/fail.h"
#include "base/text.h"
#include "model/config_values.h"
#include "model/head_rules.h"
#include "model/heeded_arguments.h"

namespace shardwright {
namespace {

constexpr std::array<std::string_view, 15> kOfTraining = {"attention_dropout",
                                                          "bf16",
                                                          "fp16",
                                                          "hidden_dropout",
                                                          "init_method_std",
                                                          "initializer_range",
                                                          "make_vocab_size_divisible_by",
                                                          "max_position_embeddings",
                                                          "moe_aux_loss_coeff",
                                                          "padded_vocab_size",
                                                          "params_dtype",
                                                          "router_aux_loss_coef",
                                                          "seq_length",
                                                          "tokenizer_type",
                                                          "vocab_size"};
// Tensors show how many there are, and a run may drop the layers that config.json has.
constexpr std::string_view kPredictionLayers = "mtp_num_layers";

void add_names(const std::vector<std::string>& spelled, SettingNames& names) {
  for (const std::string& name : spelled) names.emplace(flag_name(name).name);
}

bool orders_rows(std::string_view size) {
  return size.ends_with("heads") || size.ends_with("groups");
}

// The arguments that say how many heads there are.
SettingNames names_of_heads(const Mapping& mapping) {
  SettingNames names;
  for (const SizeRule& rule : mapping.sizes) {
    if (orders_rows(rule.name)) add_names(rule.args, names);
  }
  return names;
}

// All names of the settings of which the run says something under one of them.
SettingNames settings_said(const Mapping& mapping, const Arguments& run) {
  SettingNames said;
  const auto add = [&](const std::vector<std::string>& spelled) {
    const bool is_said = std::ranges::any_of(spelled, [&](const std::string& name) {
      return find_set(run, flag_name(name).name) != nullptr;
    });
    if (is_said) add_names(spelled, said);
  };
  for (const SizeRule& rule : mapping.sizes) add(rule.args);
  for (const ConfigRule& rule : mapping.config) add(rule.args);
  return said;
}

// The arguments of sizes that the tensors show, whatever either side says (LFM2's widths), and of
// those that a side may leave to them.
struct SizesOfTensors {
  SettingNames shown;
  SettingNames left;
};

SizesOfTensors sizes_of_tensors(const Mapping& mapping) {
  SizesOfTensors sizes;
  for (const SizeRule& rule : mapping.sizes) {
    if (!rule.shown_by.empty()) add_names(rule.args, sizes.shown);
    if (rule.optional) add_names(rule.args, sizes.left);
  }
  for (const IndexRule& index : mapping.indices) {
    const auto size = std::ranges::find(mapping.sizes, index.size, &SizeRule::name);
    if (index.observed && size != mapping.sizes.end()) add_names(size->args, sizes.left);
  }
  return sizes;
}

bool says_none(const ArgValue& value) { return std::holds_alternative<std::monostate>(value); }

// Whether None says something, rather than that the run does not say it.
bool may_be_none(const ConfigRule& rule) {
  const bool is_kept = rule.inert && rule.kind == ConfigRule::Kind::kPair && !rule.fallback;
  return rule.unset || is_kept || rule.kind == ConfigRule::Kind::kInverted ||
         rule.kind == ConfigRule::Kind::kWindow;
}

// Of the settings that the run says are None, all names.
SettingNames settings_none(const Mapping& mapping, const Arguments& run) {
  SettingNames none;
  const auto add = [&](const std::vector<std::string>& spelled) {
    bool is_none = false;
    for (const std::string& name : spelled) {
      const auto found = run.find(flag_name(name).name);
      if (found == run.end()) continue;
      if (!std::holds_alternative<std::monostate>(found->second)) return;
      is_none = true;
    }
    if (is_none) add_names(spelled, none);
  };
  for (const ConfigRule& rule : mapping.config) {
    if (may_be_none(rule)) add(rule.args);
  }
  return none;
}

// What computes nothing: as None, or by one.
bool is_neutral(const ArgValue& value) {
  return std::holds_alternative<std::monostate>(value) || same_value(value, ArgValue{false}) ||
         same_value(value, ArgValue{std::int64_t{0}}) ||
         same_value(value, ArgValue{std::int64_t{1}});
}

Result<Arguments> arguments_of(const Mapping& mapping, const HfConfig& config) {
  const ArgsFromConfig made = SW_TRY(args_from_hf_config(mapping, config));
  return heeded_arguments(Arguments(made.values.begin(), made.values.end()));
}

void leave_to_tensors(const Mapping& mapping, ModelSettings& settings) {
  const SizesOfTensors sizes = sizes_of_tensors(mapping);
  std::erase_if(settings.said, [&](const std::string& name) {
    const auto value = settings.values.find(name);
    const bool is_open = value == settings.values.end() || says_none(value->second);
    return sizes.shown.contains(name) || (is_open && sizes.left.contains(name));
  });
}

// None where the family makes no such argument of that side's config.json.
ArgValue value_in(const Arguments& arguments, const std::string& name) {
  const auto found = arguments.find(name);
  return found == arguments.end() ? ArgValue{} : found->second;
}

}  // namespace

SettingNames settings_read(const Mapping& mapping, std::vector<std::string> SizeRule::* of_size,
                           std::vector<std::string> ConfigRule::* of_rule) {
  SettingNames names;
  for (const SizeRule& rule : mapping.sizes) add_names(rule.*of_size, names);
  for (const ConfigRule& rule : mapping.config) add_names(rule.*of_rule, names);
  return names;
}

bool is_of_training(std::string_view key) {
  const std::string_view leaf = key.substr(key.rfind('.') + 1);
  return std::ranges::find(kOfTraining, leaf) != kOfTraining.end();
}

Result<std::vector<DifferingSetting>> differing_settings(const Mapping& mapping,
                                                         const HfConfig& config,
                                                         const Arguments& run) {
  const ConfigFromArgs made = SW_TRY(config_from_args(mapping, run));
  const HfConfig config_of_run = SW_TRY(read_hf_config(made.json));
  const Arguments of_run = SW_TRY(arguments_of(mapping, config_of_run));
  const Arguments of_config = SW_TRY(arguments_of(mapping, config));
  const SettingNames heads = names_of_heads(mapping);
  const SizesOfTensors sizes = sizes_of_tensors(mapping);
  std::vector<DifferingSetting> differing;
  for (const std::string& name : settings_said(mapping, run)) {
    if (is_of_training(name) || name == kPredictionLayers) continue;
    if (is_of_replaced_head(config, name) || sizes.shown.contains(name)) continue;
    ArgValue theirs = value_in(of_run, name);
    ArgValue ours = value_in(of_config, name);
    if (same_value(theirs, ours) || (says_none(ours) && sizes.left.contains(name))) continue;
    differing.push_back({name, std::move(theirs), std::move(ours), heads.contains(name)});
  }
  for (const std::string& name : settings_none(mapping, run)) {
    ArgValue ours = value_in(of_config, name);
    if (is_of_training(name) || is_neutral(ours)) continue;
    differing.push_back({name, ArgValue{}, std::move(ours), false});
  }
  return differing;
}

Result<ModelSettings> settings_of_config(const Mapping& mapping, const HfConfig& config) {
  ModelSettings settings{SW_TRY(arguments_of(mapping, config)), {}};
  for (const auto& [name, value] : settings.values) settings.said.insert(name);
  leave_to_tensors(mapping, settings);
  return settings;
}

Result<ModelSettings> settings_of_run(const Mapping& mapping, const Arguments& run) {
  const ConfigFromArgs made = SW_TRY(config_from_args(mapping, run));
  const HfConfig config = SW_TRY(read_hf_config(made.json));
  ModelSettings settings{SW_TRY(arguments_of(mapping, config)), settings_said(mapping, run)};
  leave_to_tensors(mapping, settings);
  return settings;
}

std::vector<DifferingSetting> differing_models(const ModelSettings& one,
                                               const ModelSettings& other) {
  std::vector<DifferingSetting> differing;
  for (const std::string& name : one.said) {
    if (!other.said.contains(name) || is_of_training(name) || name == kPredictionLayers) continue;
    ArgValue first = value_in(one.values, name);
    ArgValue second = value_in(other.values, name);
    if (!same_value(first, second)) {
      differing.push_back({name, std::move(first), std::move(second), false});
    }
  }
  return differing;
}

std::string text_of(const std::vector<DifferingSetting>& settings) {
  std::vector<std::string> told;
  for (const DifferingSetting& each : settings) {
    told.push_back(fmt::format("{} = {} (config.json: {})", each.argument, to_string(each.of_run),
                               to_string(each.of_config)));
  }
  return name_list(told);
}

}  // namespace shardwright

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "model/arguments.h"
#include "model/config.h"
#include "model/config_rules.h"
#include "model/mapping_file.h"

namespace shardwright {

/// Names of settings as one side spells them.
using SettingNames = std::set<std::string, std::less<>>;

/// The settings that a family's rules read: of a config.json (`&SizeRule::hf`, `&ConfigRule::hf`)
/// or of arguments.
[[nodiscard]] SettingNames settings_read(const Mapping& mapping,
                                         std::vector<std::string> SizeRule::* of_size,
                                         std::vector<std::string> ConfigRule::* of_rule);

/// Whether a setting that rules read says how the model is trained, stored or padded: no tensor is
/// computed with it.
[[nodiscard]] bool is_of_training(std::string_view key);

/// A setting of which a training run says one thing and a config.json another.
struct DifferingSetting {
  std::string argument;
  ArgValue of_run;
  ArgValue of_config;
  /// A number of heads or of their groups: shapes look the same, but rows belong to other heads.
  bool orders_rows = false;
};

/// What the model computes with the one and not with the other. Both are brought into the family's
/// arguments, since either may spell a setting in several ways; only what the run says is compared,
/// None where that says something.
/// Errors: those of config_from_args, where the run says what no config.json of the family does.
/// Pure.
[[nodiscard]] Result<std::vector<DifferingSetting>> differing_settings(const Mapping& mapping,
                                                                       const HfConfig& config,
                                                                       const Arguments& run);

/// A model's settings as arguments of its family, and those that its source says anything of.
struct ModelSettings {
  Arguments values;
  SettingNames said;
};

/// Of a config.json, which says all. Errors: those of args_from_hf_config. Pure.
[[nodiscard]] Result<ModelSettings> settings_of_config(const Mapping& mapping,
                                                       const HfConfig& config);

/// Of a run's arguments. Errors: those of config_from_args, where the run says what no config.json
/// of the family does. Pure.
[[nodiscard]] Result<ModelSettings> settings_of_run(const Mapping& mapping, const Arguments& run);

/// What both models say and compute with differently; `of_run` is the first one's. Pure.
[[nodiscard]] std::vector<DifferingSetting> differing_models(const ModelSettings& one,
                                                             const ModelSettings& other);

/// "rotary_base = 500000 (config.json: 10000)", and how many more.
[[nodiscard]] std::string text_of(const std::vector<DifferingSetting>& settings);

}  // namespace shardwright

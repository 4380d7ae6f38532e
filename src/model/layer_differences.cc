// SPDX-License-Identifier: Apache-2.0
#include "model/layer_differences.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string_view>

#include "base/translated.h"
#include "model/config_rules.h"
#include "model/config_values.h"

namespace shardwright {
namespace {

// What Megatron-Core's mixers add to the variance, whatever the model's other norms do.
constexpr double kMixersEpsilon = 1e-5;

// Whether any rule of the family has this key.
bool knows_key(const Mapping& mapping, std::string_view key) {
  return std::ranges::any_of(mapping.config, [&](const ConfigRule& rule) {
    return std::ranges::any_of(rule.hf,
                               [&](const std::string& name) { return leaf_of(name) == key; });
  });
}

// By the list of the layers' attention, else by the number of those in front that have none.
bool has_windows(const Mapping& mapping, const Arguments& hf, const Arguments& args) {
  const ArgValue* const types = setting_of(mapping, hf, "layer_types");
  if (const auto* list =
          types == nullptr ? nullptr : std::get_if<std::vector<std::string>>(types)) {
    return std::ranges::find(*list, "sliding_attention") != list->end();
  }
  const std::int64_t layers = whole_or(find_set(args, "num_layers"), 0);
  return whole_or(setting_of(mapping, hf, "max_window_layers"), 0) < layers;
}

void add_windows(const Mapping& mapping, const Arguments& hf, const Arguments& args,
                 std::vector<std::string>& told) {
  constexpr std::string_view kSwitch = "use_sliding_window";
  const ArgValue* const is_used = setting_of(mapping, hf, kSwitch);
  const ArgValue* const window = setting_of(mapping, hf, "sliding_window");
  if (is_used == nullptr || !same_value(*is_used, ArgValue{true}) || window == nullptr) return;
  if (knows_key(mapping, kSwitch) || find_set(args, "window_size") != nullptr) return;
  if (whole_or(window, 0) < 1 || !has_windows(mapping, hf, args)) return;
  told.push_back(
      translated("layers have a sliding window of sliding_window = {} tokens, as {} says, which "
                 "the arguments leave out",
                 to_string(*window), kSwitch));
}

bool has_mixers(const Arguments& args) {
  return find_set(args, "mamba_state_dim") != nullptr &&
         find_set(args, "mamba_num_heads") != nullptr;
}

void add_epsilon_of_mixers(const Mapping& mapping, const Arguments& args,
                           std::vector<std::string>& told) {
  const ArgValue* const said = first_said(args, "layernorm_epsilon|norm_epsilon").value;
  std::optional<double> epsilon = said == nullptr ? std::nullopt : as_number(*said);
  if (mapping.mixer_epsilon) epsilon = mapping.mixer_epsilon;
  if (!epsilon || *epsilon == kMixersEpsilon) return;
  told.push_back(
      translated("norms in Mamba mixers have an epsilon of {}, where Megatron-Core's have {}",
                 *epsilon, kMixersEpsilon));
}

void add_limits_of_steps(const Mapping& mapping, const Arguments& hf,
                         std::vector<std::string>& told) {
  constexpr std::string_view kKey = "time_step_limit";
  const ArgValue* const said = setting_of(mapping, hf, kKey);
  const auto* const limits = said == nullptr ? nullptr : std::get_if<std::vector<double>>(said);
  if (limits == nullptr || limits->size() != 2 || knows_key(mapping, "time_step_min")) return;
  if ((*limits)[0] <= 0.0 && std::isinf((*limits)[1])) return;
  told.push_back(
      translated("steps of Mamba mixers are kept within {} = {}, where Megatron-Core keeps them "
                 "as they are",
                 kKey, to_string(*said)));
}

}  // namespace

std::vector<std::string> layer_differences(const Mapping& mapping, const Arguments& hf,
                                           const Arguments& args) {
  std::vector<std::string> told;
  add_windows(mapping, hf, args, told);
  if (has_mixers(args)) {
    add_epsilon_of_mixers(mapping, args, told);
    add_limits_of_steps(mapping, hf, told);
  }
  return told;
}

}  // namespace shardwright

// SPDX-License-Identifier: Apache-2.0
#include "state/param_group.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>

#include "base/fail.h"
#include "codec/pickle_encode.h"

namespace shardwright {
namespace {

using pickle::Value;

// NeMo calls them `pre_wd_mult`.
Value find_factor(Value group, std::string_view name) {
  const Value plain = group.find(name);
  return plain ? plain : group.find("pre_" + std::string(name));
}

}  // namespace

OptimizerGroup read_param_group(Value group) {
  OptimizerGroup result;
  result.is_expert = group.find("is_expert_parallel").as_bool().value_or(false);
  const Value factor = find_factor(group, "wd_mult");
  const Value decay = factor ? factor : group.find("weight_decay");
  result.has_decay = decay.as_double().value_or(1.0) != 0.0;
  result.has_own_rate = group.find("is_decoupled_lr").as_bool().value_or(false) ||
                        !group.find("default_config").as_bool().value_or(true);
  // Some say neither, and tell nothing by that.
  const bool has_momentum =
      static_cast<bool>(group.find("momentum")) || static_cast<bool>(group.find("momentum_beta"));
  result.has_betas = static_cast<bool>(group.find("betas")) || !has_momentum;
  result.is_beside = group.find("optimizer").as_string().has_value();
  result.parameters = group.find("params").size();
  return result;
}

std::vector<OptimizerGroup> read_param_groups(std::span<const Value> groups) {
  std::vector<OptimizerGroup> result;
  for (const Value group : groups) result.push_back(read_param_group(group));
  return result;
}

GroupRule read_group_rule(Value args, std::span<const Value> groups) {
  const auto is_set = [&](std::string_view name) {
    return args.attribute(name).as_bool().value_or(false);
  };
  const auto has_number = [&](std::string_view name) {
    return args.attribute(name).as_double().has_value();
  };
  // Since Megatron-Core 0.16 groups say that they have the usual settings, or that they have not.
  const bool tells_defaults = std::ranges::any_of(
      groups, [](Value group) { return static_cast<bool>(group.find("default_config")); });
  const bool is_decoupled = std::ranges::any_of(
      groups, [](Value group) { return group.find("is_decoupled_lr").as_bool() == true; });
  GroupRule rule;
  // What became a flag was a condition's name before.
  const std::string_view condition =
      args.attribute("no_weight_decay_cond_type").as_string().value_or("");
  rule.decays_query_key_norms = is_set("apply_wd_to_qk_layernorm") ||
                                condition == "apply_wd_to_qk_layernorm" ||
                                condition == "qwen3_next";
  rule.spares_embeddings = !tells_defaults && has_number("embedding_init_method_std");
  if (is_set("use_mup")) {
    const bool is_sgd = args.attribute("optimizer").as_string() == "sgd";
    rule.own_rate = is_sgd ? OwnRate::kVectors : OwnRate::kMatrices;
  } else if (tells_defaults && !is_decoupled && !has_number("decoupled_lr")) {
    rule.own_rate = OwnRate::kUnknown;
  }
  return rule;
}

bool has_own_steps(Value group) {
  return group.find("betas") && (group.find("foreach") || group.find("amsgrad"));
}

std::optional<std::int64_t> step_of_group(Value group) {
  constexpr double most = 9007199254740992.0;  // up to there each whole number is a double
  const Value step = group.find("step");
  if (const auto count = step.as_int()) return count;
  const double count = step.as_double().value_or(-1.0);
  if (!(count >= 0.0 && count <= most) || std::trunc(count) != count) return {};
  return static_cast<std::int64_t>(count);
}

std::vector<Value> param_groups_of(Value part) {
  Value list = part.find("optimizer").find("param_groups");
  if (!list) list = part.find("param_groups");
  std::vector<Value> groups;
  for (std::size_t i = 0; i < list.size(); ++i) groups.push_back(list[i]);
  return groups;
}

Result<std::string> settings_of_group(const pickle::Document& document, Value group,
                                      std::initializer_list<std::string_view> but) {
  std::map<std::string_view, Value> pairs;
  for (std::size_t i = 0; i < group.size(); ++i) {
    const std::string_view key = group.key(i).text();
    if (std::ranges::find(but, key) == but.end()) pairs.emplace(key, group.value(i));
  }
  std::string text;
  for (const auto& [key, value] : pairs) {
    text += key;
    text += SW_TRY(pickle::encode(document, value, pickle::Protocol::kTwo));
  }
  return text;
}

}  // namespace shardwright

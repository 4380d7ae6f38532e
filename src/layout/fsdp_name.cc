// SPDX-License-Identifier: Apache-2.0
#include "layout/fsdp_name.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "base/text.h"
#include "layout/expert_names.h"
#include "layout/latent_fusion.h"
#include "layout/legacy_names.h"
#include "layout/mixer_parts.h"
#include "layout/wrapped_name.h"

namespace shardwright {
namespace {

constexpr std::string_view kModule = "module.";
constexpr std::string_view kModel = "model.module.";
constexpr std::string_view kPlainModel = "model.";
constexpr std::string_view kOptimizer = "optimizer.";
constexpr std::string_view kState = "state.";
constexpr std::string_view kGroups = "param_to_group_meta.";
constexpr std::string_view kWrapped = "module.module.module.";
constexpr std::string_view kGrouped = ".experts.linear_fc";
constexpr std::string_view kListedExperts = ".experts.local_experts.";

struct RoleName {
  FsdpName::Role role;
  std::string_view suffix;
};
constexpr std::array kRoles = {
    RoleName{FsdpName::Role::kExpAvg, ".exp_avg"},
    RoleName{FsdpName::Role::kExpAvgSq, ".exp_avg_sq"},
    RoleName{FsdpName::Role::kMomentum, ".momentum_buffer"},
    RoleName{FsdpName::Role::kStep, ".step"},
    RoleName{FsdpName::Role::kMaster, ".param"},
};

std::string_view without_modules(std::string_view name) {
  while (name.starts_with(kModule)) name.remove_prefix(kModule.size());
  return name;
}

// What `optimizer.` has under `part`. Several optimizers in a chain share out the parameters and
// are numbered: `optimizer.1.state.…`.
std::optional<std::string_view> of_optimizer(std::string_view name, std::string_view part) {
  if (!name.starts_with(kOptimizer)) return std::nullopt;
  name.remove_prefix(kOptimizer.size());
  std::string_view rest = name;
  if (take_number(rest) && rest.starts_with('.')) name = rest.substr(1);
  if (!name.starts_with(part)) return std::nullopt;
  return without_modules(name.substr(part.size()));
}

// `…experts.linear_fc1.weight5` and `…experts.local_experts.5.linear_fc1.weight`.
void take_expert(std::string_view parameter, FsdpName& name) {
  name.parameter = parameter;
  if (const std::size_t at = parameter.find(kListedExperts); at != parameter.npos) {
    std::string_view rest = parameter.substr(at + kListedExperts.size());
    const auto expert = take_number(rest);
    if (!expert || !rest.starts_with('.')) return;
    name.expert = expert;
    name.parameter = std::string(parameter.substr(0, at)) + std::string(kExpertLinears) +
                     std::string(rest.substr(1));
    return;
  }
  const std::size_t at = parameter.find(kGrouped);
  const std::size_t digits = parameter.find_last_not_of("0123456789") + 1;
  if (at == parameter.npos || digits == parameter.size()) return;
  std::string_view number = parameter.substr(digits);
  const std::string_view stem = parameter.substr(0, digits);
  if (!stem.ends_with(".weight") && !stem.ends_with(".bias")) return;
  name.expert = take_number(number);
  if (!name.expert) return;
  constexpr std::string_view kExperts = ".experts.";
  name.parameter = std::string(stem.substr(0, at)) + std::string(kExpertLinears) +
                   std::string(stem.substr(at + kExperts.size()));
}

std::string stored_parameter(std::string_view parameter, std::optional<std::int64_t> expert) {
  const std::size_t at = parameter.find(kExpertLinears);
  if (!expert || at == parameter.npos) return std::string(parameter);
  return fmt::format("{}.experts.{}{}", parameter.substr(0, at),
                     parameter.substr(at + kExpertLinears.size()), *expert);
}

}  // namespace

std::optional<FsdpName> split_fsdp_name(std::string_view name) {
  FsdpName split;
  std::string_view parameter;
  if (name.starts_with(kModel)) {
    parameter = without_modules(name.substr(kModel.size()));
  } else if (const auto state = of_optimizer(name, kState)) {
    parameter = *state;
    const RoleName* found = nullptr;
    for (const RoleName& role : kRoles) {
      if (parameter.ends_with(role.suffix)) found = &role;
    }
    if (found == nullptr) return std::nullopt;
    split.role = found->role;
    parameter.remove_suffix(found->suffix.size());
  } else {
    return std::nullopt;
  }
  split.half = take_gate_half(parameter);
  take_expert(parameter, split);
  return split;
}

std::string join_fsdp_name(const FsdpName& name) {
  std::string text = name.role == FsdpName::Role::kModel
                         ? std::string(kModel)
                         : fmt::format("{}{}{}", kOptimizer, kState, kWrapped);
  text += stored_parameter(name.parameter, name.expert);
  text += ending_of(name.half);
  for (const RoleName& role : kRoles) {
    if (role.role == name.role) text += role.suffix;
  }
  return text;
}

std::optional<FsdpGroupEntry> split_fsdp_group_entry(std::string_view name) {
  const auto entry = of_optimizer(name, kGroups);
  const std::size_t dot = entry ? entry->rfind('.') : name.npos;
  if (dot == name.npos) return std::nullopt;
  return FsdpGroupEntry{entry->substr(0, dot), entry->substr(dot + 1)};
}

std::string join_fsdp_group_entry(std::string_view parameter, std::optional<std::int64_t> expert,
                                  std::string_view key) {
  return fmt::format("{}{}{}{}.{}", kOptimizer, kGroups, kWrapped,
                     stored_parameter(parameter, expert), key);
}

std::string fsdp_settings_name(std::string_view parameter, std::optional<std::int64_t> expert) {
  std::string text = join_fsdp_group_entry(parameter, expert, "");
  text.pop_back();  // the dot before the setting
  return text;
}

std::vector<std::string> fsdp_settings_of(const FsdpName& name) {
  const auto settings = [&](std::string_view parameter) {
    return fsdp_settings_name(parameter, name.expert);
  };
  const std::string parameter = canonical_from_legacy(name.parameter, {}, false).name;
  if (!is_fused_latent(parameter)) return {settings(split_mixer_part(parameter).first)};
  const auto [query, key_value] = latent_weights(parameter);
  return {settings(query), settings(key_value)};
}

std::vector<std::string> fsdp_settings_of(const FsdpGroupEntry& entry) {
  return fsdp_settings_of(split_fsdp_parameter(entry.parameter));
}

FsdpName split_fsdp_parameter(std::string_view parameter) {
  FsdpName name;
  take_expert(parameter, name);
  return name;
}

bool is_fsdp_model_name(std::string_view name) { return name.starts_with(kModel); }

bool is_torch_dcp_model_name(std::string_view name) {
  if (!name.starts_with(kPlainModel)) return false;
  name = without_parts(name.substr(kPlainModel.size()));
  if (name.starts_with("embedding.word_embeddings.")) return true;
  constexpr std::string_view kLayers = "decoder.layers.";
  if (!name.starts_with(kLayers)) return false;
  name.remove_prefix(kLayers.size());
  constexpr std::array<std::string_view, 5> kModules = {".self_attention.", ".mlp.linear_fc",
                                                        ".mlp.router.", ".mlp.experts.", ".mixer."};
  return take_number(name) && std::ranges::any_of(kModules, [&](std::string_view module) {
           return name.starts_with(module);
         });
}

std::optional<std::string> fsdp_model_name(std::string_view torch_dcp_name) {
  if (!torch_dcp_name.starts_with(kPlainModel)) return std::nullopt;
  return std::string(kModel) + std::string(torch_dcp_name.substr(kPlainModel.size()));
}

}  // namespace shardwright

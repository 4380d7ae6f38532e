// SPDX-License-Identifier: Apache-2.0
#include "layout/fsdp_name.h"

#include <fmt/core.h>

#include <array>

#include "base/text.h"

namespace shardwright {
namespace {

constexpr std::string_view kModule = "module.";
constexpr std::string_view kModel = "model.module.";
constexpr std::string_view kState = "optimizer.state.";
constexpr std::string_view kGroups = "optimizer.param_to_group_meta.";
constexpr std::string_view kWrapped = "module.module.module.";
constexpr std::string_view kGrouped = ".experts.linear_fc";
constexpr std::string_view kListed = ".experts.local_experts.";
constexpr std::string_view kCanonicalExperts = ".experts.experts.";

struct RoleName {
  FsdpName::Role role;
  std::string_view suffix;
};
constexpr std::array kRoles = {
    RoleName{FsdpName::Role::kExpAvg, ".exp_avg"},
    RoleName{FsdpName::Role::kExpAvgSq, ".exp_avg_sq"},
    RoleName{FsdpName::Role::kStep, ".step"},
};

std::string_view without_modules(std::string_view name) {
  while (name.starts_with(kModule)) name.remove_prefix(kModule.size());
  return name;
}

// `…experts.linear_fc1.weight5` and `…experts.local_experts.5.linear_fc1.weight`.
void take_expert(std::string_view parameter, FsdpName& name) {
  name.parameter = parameter;
  if (const std::size_t at = parameter.find(kListed); at != parameter.npos) {
    std::string_view rest = parameter.substr(at + kListed.size());
    const auto expert = take_number(rest);
    if (!expert || !rest.starts_with('.')) return;
    name.expert = expert;
    name.parameter = std::string(parameter.substr(0, at)) + std::string(kCanonicalExperts) +
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
  name.parameter = std::string(stem.substr(0, at)) + std::string(kCanonicalExperts) +
                   std::string(stem.substr(at + kExperts.size()));
}

void take_half(std::string_view& parameter, FsdpName& name) {
  if (parameter.find("linear_fc1.") == parameter.npos) return;
  if (parameter.ends_with("_w")) name.half = FsdpName::Half::kGate;
  if (parameter.ends_with("_v")) name.half = FsdpName::Half::kValue;
  if (name.half != FsdpName::Half::kWhole) parameter.remove_suffix(2);
}

std::string stored_parameter(std::string_view parameter, std::optional<std::int64_t> expert) {
  const std::size_t at = parameter.find(kCanonicalExperts);
  if (!expert || at == parameter.npos) return std::string(parameter);
  return fmt::format("{}.experts.{}{}", parameter.substr(0, at),
                     parameter.substr(at + kCanonicalExperts.size()), *expert);
}

}  // namespace

std::optional<FsdpName> split_fsdp_name(std::string_view name) {
  FsdpName split;
  std::string_view parameter;
  if (name.starts_with(kModel)) {
    parameter = without_modules(name.substr(kModel.size()));
  } else if (name.starts_with(kState)) {
    parameter = without_modules(name.substr(kState.size()));
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
  take_half(parameter, split);
  take_expert(parameter, split);
  return split;
}

std::string join_fsdp_name(const FsdpName& name) {
  std::string text = name.role == FsdpName::Role::kModel
                         ? std::string(kModel)
                         : std::string(kState) + std::string(kWrapped);
  text += stored_parameter(name.parameter, name.expert);
  if (name.half == FsdpName::Half::kGate) text += "_w";
  if (name.half == FsdpName::Half::kValue) text += "_v";
  for (const RoleName& role : kRoles) {
    if (role.role == name.role) text += role.suffix;
  }
  return text;
}

std::optional<FsdpGroupEntry> split_fsdp_group_entry(std::string_view name) {
  if (!name.starts_with(kGroups)) return std::nullopt;
  const std::string_view rest = without_modules(name.substr(kGroups.size()));
  const std::size_t dot = rest.rfind('.');
  if (dot == rest.npos) return std::nullopt;
  return FsdpGroupEntry{rest.substr(0, dot), rest.substr(dot + 1)};
}

std::string join_fsdp_group_entry(std::string_view parameter, std::optional<std::int64_t> expert,
                                  std::string_view key) {
  return fmt::format("{}{}{}.{}", kGroups, kWrapped, stored_parameter(parameter, expert), key);
}

bool is_fsdp_model_name(std::string_view name) { return name.starts_with(kModel); }

}  // namespace shardwright

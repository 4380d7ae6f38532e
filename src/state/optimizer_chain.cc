// SPDX-License-Identifier: Apache-2.0
#include "state/optimizer_chain.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string_view>

#include "state/group_settings.h"
#include "state/param_group.h"

namespace shardwright {
namespace {

using pickle::Document;
using pickle::Kind;
using pickle::Value;

constexpr std::string_view kSplit =
    "optimizer parameter groups are split into dense and expert parameters";
constexpr std::string_view kJoined =
    "optimizer parameter groups of dense and expert parameters are joined";
constexpr std::string_view kJoinedAsOthers =
    "optimizer parameter groups of dense and expert parameters are joined; those of experts had "
    "other settings or steps, and get those of the others, as Muon has one group for both";

Value copy_dict(Document& document, Value from) {
  const Value copy = document.dict();
  for (std::size_t i = 0; i < from.size(); ++i) {
    document.add_pair(copy, from.key(i), from.value(i));
  }
  return copy;
}

bool is_of_experts(Value group) { return read_param_group(group).is_expert; }

/// One optimizer of a chain, or the only one.
struct ChainPart {
  Value dict;
  std::vector<Value> groups;

  [[nodiscard]] bool is_of_experts() const {
    return !groups.empty() && std::ranges::all_of(groups, shardwright::is_of_experts);
  }
  [[nodiscard]] bool trains_like(const ChainPart& other) const {
    return !groups.empty() && !other.groups.empty() &&
           read_param_group(groups[0]).is_same_optimizer(read_param_group(other.groups[0]));
  }
};

// With other groups, where param_groups_of() finds them, and states of its own: a loader would fill
// twice what two parts have in common.
ChainPart with_groups(Document& document, const ChainPart& part, std::vector<Value> groups) {
  const Value outer = copy_dict(document, part.dict);
  Value inner = outer;  // FP32Optimizer's dict is torch's own
  if (const Value nested = part.dict.find("optimizer"); nested.find("param_groups")) {
    inner = copy_dict(document, nested);
    document.set(outer, "optimizer", inner);
  }
  document.set(inner, "param_groups", document.list(groups));
  if (const Value states = inner.find("state"); states.is(Kind::kDict)) {
    document.set(inner, "state", copy_dict(document, states));
  }
  return {outer, std::move(groups)};
}

struct SplitGroups {
  std::vector<Value> dense;
  std::vector<Value> experts;
};

SplitGroups split_groups(const std::vector<Value>& groups) {
  SplitGroups split;
  for (const Value group : groups)
    (is_of_experts(group) ? split.experts : split.dense).push_back(group);
  return split;
}

// Parameter groups of the experts' own optimizer where nothing was said of them: those of the
// others, marked as expert parallel. Experts have no norms, so most have nothing without weight
// decay, and Megatron makes no group for that then.
std::vector<Value> groups_for_experts(Document& document, const std::vector<Value>& dense,
                                      bool have_biases) {
  std::vector<Value> groups;
  for (const Value each : dense) {
    const std::optional<double> decay = each.find("wd_mult").as_double();
    if (decay && *decay == 0.0 && !have_biases) continue;
    const Value group = copy_dict(document, each);
    document.set(group, "is_expert_parallel", document.boolean(true));
    groups.push_back(group);
  }
  return groups;
}

// What a group says but for whose it is.
Result<std::string> settings_of(const Document& document, Value group) {
  return settings_of_group(document, group, {"params", "is_expert_parallel"});
}

bool trains_with_muon(const std::vector<ChainPart>& parts) {
  std::vector<OptimizerGroup> groups;
  for (const ChainPart& part : parts) {
    for (const Value group : part.groups) groups.push_back(read_param_group(group));
  }
  return has_muon(groups);
}

Result<bool> says_otherwise(const Document& document, const ChainPart& experts,
                            const ChainPart& dense) {
  std::set<std::string> said;
  for (const Value group : dense.groups) said.insert(SW_TRY(settings_of(document, group)));
  bool is_other = false;
  for (const Value group : experts.groups) {
    is_other |= !said.contains(SW_TRY(settings_of(document, group)));
  }
  return is_other;
}

// Each optimizer of experts becomes a part of the one that trains like it: a run without expert
// parallelism has its experts among the others. Their own groups say nothing where they say the
// same. Where they do not they are kept, but for those of a chain with Muon: Megatron loads a list
// of as many as it has only.
Result<bool> join_experts(Document& document, std::vector<ChainPart>& parts,
                          std::vector<std::string>& notes) {
  const bool has_muon = trains_with_muon(parts);
  bool has_joined = false;
  bool differ = false;
  for (std::size_t i = 0; i < parts.size();) {
    const auto dense = std::ranges::find_if(parts, [&](const ChainPart& other) {
      return !other.is_of_experts() && other.trains_like(parts[i]);
    });
    if (!parts[i].is_of_experts() || dense == parts.end()) {
      ++i;
      continue;
    }
    const bool is_other = SW_TRY(says_otherwise(document, parts[i], *dense));
    if (is_other && !has_muon) {
      std::vector<Value> groups = dense->groups;
      groups.insert(groups.end(), parts[i].groups.begin(), parts[i].groups.end());
      *dense = with_groups(document, *dense, std::move(groups));
    }
    parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(i));
    differ |= is_other;
    has_joined = true;
  }
  if (!has_joined) return false;
  std::string_view what = kJoined;
  if (differ && has_muon) {
    what = kJoinedAsOthers;
  } else if (differ) {
    what =
        "optimizer parameter groups of dense and expert parameters are joined; those of experts, "
        "which have other settings or steps, are kept apart, and a run that loads torch_dist "
        "without expert parallelism does not ask for them";
  }
  notes.emplace_back(what);
  return true;
}

// Experts are matrices, which the first optimizer trains.
void split_experts(Document& document, std::vector<ChainPart>& parts, bool have_biases,
                   std::vector<std::string>& notes) {
  const ChainPart whole = parts.front();
  auto [dense, experts] = split_groups(whole.groups);
  if (experts.empty()) experts = groups_for_experts(document, dense, have_biases);
  parts.front() = with_groups(document, whole, std::move(dense));
  parts.insert(parts.begin() + 1, with_groups(document, whole, std::move(experts)));
  notes.emplace_back(kSplit);
}

// The same where all groups of matrices are one optimizer's. Whether it changed.
Result<bool> regroup_inside(Document& document, ChainPart& part, const ChainLayout& layout,
                            std::vector<std::string>& notes) {
  auto [dense, experts] = split_groups(part.groups);
  if (experts.empty() != layout.experts_apart || dense.empty()) return false;
  if (layout.experts_apart) {
    for (const Value group : groups_for_experts(document, dense, layout.experts_have_biases)) {
      dense.push_back(group);
    }
    notes.emplace_back(kSplit);
  } else {
    const bool is_other =
        SW_TRY(says_otherwise(document, {part.dict, experts}, {part.dict, dense}));
    notes.emplace_back(is_other ? kJoinedAsOthers : kJoined);
  }
  part = with_groups(document, part, std::move(dense));
  return true;
}

void put_chain(Document& document, Value state, const std::vector<ChainPart>& parts) {
  if (parts.size() == 1) {
    document.set(state, "optimizer", parts.front().dict);
    return;
  }
  const Value chain = document.dict();
  std::int64_t number = 0;
  for (const ChainPart& part : parts) {
    document.add_pair(chain, document.integer(number++), part.dict);
  }
  document.set(state, "optimizer", chain);
}

// Megatron-Core 0.16 calls it `dist_muon`.
bool shares_out_layers(Value args) {
  const Value flag = args.attribute("use_layer_wise_distributed_optimizer");
  const auto name = args.attribute("optimizer").as_string();
  return flag.as_bool() == true || (name && name->starts_with("dist_"));
}

// `state` of torch's own Adam, where Megatron puts the step that its parameters have in common.
constexpr std::string_view kCommonStep = "common_step";
constexpr std::string_view kMasters = "fp32_from_fp16_params";

Value states_of(Value part) {
  const Value nested = part.find("optimizer").find("state");
  return nested ? nested : part.find("state");
}

bool has_no_master(Value masters) {
  if (!masters.is(Kind::kList)) return false;
  for (std::size_t g = 0; g < masters.size(); ++g) {
    if (!masters[g].is(Kind::kList) || masters[g].size() > 0) return false;
  }
  return true;
}

// What the optimizers with steps have of a kind; nothing where they have none.
Value first_found(const std::vector<Value>& parts, const auto& find_in) {
  for (const Value part : parts) {
    if (const Value found = find_in(part)) return found;
  }
  return {};
}

}  // namespace

void complete_idle_optimizers(Document& document, Value state) {
  const std::vector<Value> parts = chained_optimizers(state.find("optimizer"));
  const Value common =
      first_found(parts, [](Value part) { return states_of(part).find(kCommonStep); });
  const Value step = first_found(parts, [](Value part) {
    const std::vector<Value> groups = param_groups_of(part);
    return first_found(groups, [](Value group) { return group.find("step"); });
  });
  for (const Value part : parts) {
    if (!has_no_master(part.find(kMasters))) continue;
    document.erase(part, kMasters);
    const std::vector<Value> groups = param_groups_of(part);
    const Value states = states_of(part);
    const bool counts = std::ranges::any_of(groups, has_own_steps);
    if (counts && common && states.is(Kind::kDict) && !states.find(kCommonStep)) {
      document.set(states, kCommonStep, common);
    }
    for (const Value group : groups) {
      const bool lacks_step = step && !group.find("step") && read_param_group(group).has_betas;
      if (lacks_step) document.set(group, "step", step);
    }
  }
}

Result<bool> regroup_optimizer(Document& document, Value state, const ChainLayout& layout,
                               std::vector<std::string>& notes) {
  std::vector<ChainPart> parts;
  for (const Value dict : chained_optimizers(state.find("optimizer"))) {
    parts.push_back({dict, param_groups_of(dict)});
  }
  if (parts.empty() || parts.front().groups.empty()) return false;
  const bool are_apart = std::ranges::any_of(parts, &ChainPart::is_of_experts);
  const bool shares_out = layout.may_share_out_layers && shares_out_layers(state.find("args"));
  // Muon of a run that shared out layers has experts' groups among the others.
  const bool may_be_mixed = !layout.experts_apart && !are_apart && trains_with_muon(parts);
  if (shares_out || may_be_mixed) {
    const bool changed = SW_TRY(regroup_inside(document, parts.front(), layout, notes));
    if (changed) put_chain(document, state, parts);
    return false;
  }
  if (are_apart == layout.experts_apart) return false;
  if (layout.experts_apart) {
    split_experts(document, parts, layout.experts_have_biases, notes);
  } else if (!SW_TRY(join_experts(document, parts, notes))) {
    return false;
  }
  put_chain(document, state, parts);
  return true;
}

}  // namespace shardwright

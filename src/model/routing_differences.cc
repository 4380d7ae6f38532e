// SPDX-License-Identifier: Apache-2.0
#include "model/routing_differences.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include "base/fail.h"
#include "base/translated.h"
#include "model/config_rules.h"
#include "model/config_values.h"

namespace shardwright {
namespace {

constexpr std::string_view kSoftmaxFirst = "moe_router_pre_softmax";

std::int64_t number_in(const Arguments& args, std::string_view name) {
  return whole_or(find_set(args, name), 0);
}

bool is_text(const ArgValue* value, std::string_view text) {
  const auto* const said = value == nullptr ? nullptr : std::get_if<std::string>(value);
  return said != nullptr && *said == text;
}

bool has_experts(const Arguments& args) {
  return number_in(args, "num_experts") > 0 || number_in(args, "num_moe_experts") > 0;
}

// By config.json, or as all models of the family do.
bool normalises_weights(const Mapping& mapping, const Arguments& hf, const Arguments& args) {
  constexpr std::array<std::string_view, 3> kKeys = {"norm_topk_prob", "route_norm",
                                                     "moe_renormalize"};
  for (const ConfigRule& rule : mapping.config) {
    const bool is_about_it = std::ranges::any_of(rule.hf, [&](const std::string& key) {
      return std::ranges::find(kKeys, leaf_of(key)) != kKeys.end();
    });
    if (!is_about_it) continue;
    const ArgValue* said = first_set(hf, rule.hf);
    if (said == nullptr && rule.value) said = &*rule.value;
    if (said == nullptr && rule.fallback) said = &*rule.fallback;
    if (said != nullptr) return same_value(*said, ArgValue{true});
  }
  return !is_true(args, "moe_apply_probs_on_input");
}

void add_single_expert(const Mapping& mapping, const Arguments& hf, const Arguments& args,
                       std::vector<std::string>& told) {
  const ArgValue* const score = find_set(args, "moe_router_score_function");
  if (!has_experts(args) || number_in(args, "moe_router_topk") != 1) return;
  if (score == nullptr || is_text(score, "softmax")) return;
  if (!normalises_weights(mapping, hf, args)) return;
  told.push_back(
      translated("the weight of the only expert that a token goes to is normalised, which "
                 "makes it 1, where Megatron-Core leaves it its score"));
}

void add_groups_of_experts(const Mapping& mapping, const Arguments& hf, const Arguments& args,
                           std::vector<std::string>& told) {
  const std::int64_t groups = number_in(args, "moe_router_num_groups");
  const std::int64_t taken = number_in(args, "moe_router_group_topk");
  if (groups <= 1 || taken < 1 || taken >= groups) return;
  std::int64_t best = 0;  // of a group, that the model scores it by
  if (is_text(setting_of(mapping, hf, "topk_method"), "group_limited_greedy")) {
    best = 1;
  } else if (is_true(args, "moe_router_enable_expert_bias")) {
    best = 2;
  }
  const std::int64_t summed = number_in(args, "moe_router_topk") / taken;
  if (best == 0 || summed == best) return;
  told.push_back(
      translated("groups of experts are chosen by their best {}, where Megatron-Core "
                 "sums their best {} (moe_router_topk / moe_router_group_topk)",
                 best, summed));
}

// A router that keeps to a capacity does so in evaluation too.
void add_dropped_tokens(const Arguments& args, std::vector<std::string>& told) {
  constexpr std::array<std::string_view, 2> kFactors = {"moe_expert_capacity_factor",
                                                        "moe_expert_rank_capacity_factor"};
  for (const std::string_view name : kFactors) {
    const ArgValue* const said = find_set(args, name);
    const std::optional<double> factor = said == nullptr ? std::nullopt : as_number(*said);
    if (!has_experts(args) || !factor || *factor < 0.0) continue;
    told.push_back(
        translated("no expert drops tokens, where Megatron-Core's drop those beyond {} = {} times "
                   "their even share",
                   name, *factor));
  }
}

void add_balancing(const Arguments& args, std::vector<std::string>& told) {
  constexpr std::string_view kName = "moe_router_load_balancing_type";
  const ArgValue* const said = find_set(args, kName);
  const bool is_own = is_text(said, "sinkhorn") || is_text(said, "quantile_balancing");
  if (!has_experts(args) || !is_own) return;
  told.push_back(
      translated("experts are chosen and weighed by their scores alone, where {} = {} has a way of "
                 "its own",
                 kName, to_string(*said)));
}

}  // namespace

std::vector<std::string> routing_differences(const Mapping& mapping, const Arguments& hf,
                                             const Arguments& args) {
  std::vector<std::string> told;
  add_groups_of_experts(mapping, hf, args, told);
  add_single_expert(mapping, hf, args, told);
  add_dropped_tokens(args, told);
  add_balancing(args, told);
  return told;
}

std::string put_softmax_first(ArgumentList& args) {
  const Arguments values(args.begin(), args.end());
  const bool takes_one = has_experts(values) && number_in(values, "moe_router_topk") == 1;
  if (!takes_one || !is_text(find_set(values, "moe_router_score_function"), "softmax")) return {};
  if (find_flag(values, kSoftmaxFirst).value_or(true)) return {};
  const auto flag =
      std::ranges::find_if(args, [](const auto& entry) { return entry.first == kSoftmaxFirst; });
  flag->second = true;
  return translated(
      "the weight of the only expert that a token goes to is 1, where Megatron-Core, which "
      "builds no such router, takes its share of the softmax ({})",
      kSoftmaxFirst);
}

Status check_weighted_inputs(const Mapping& mapping, const Arguments& args) {
  const std::int64_t chosen = number_in(args, "moe_router_topk");
  if (!is_true(args, "moe_apply_probs_on_input") || !has_experts(args) || chosen <= 1) return {};
  return fail(Code::kConfigMissing,
              "config.json: each token goes to {} experts, and models of family {} apply an "
              "expert's weight to its input, which Megatron-Core builds for one expert a token "
              "only (moe_apply_probs_on_input)",
              chosen, mapping.family);
}

}  // namespace shardwright

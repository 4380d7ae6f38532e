// SPDX-License-Identifier: Apache-2.0
#include "layout/optimizer_groups.h"

#include <algorithm>
#include <string>

#include "base/fail.h"
#include "layout/shard_contents.h"

namespace shardwright {
namespace {

using Shares = std::vector<std::vector<std::size_t>>;

// Only what some group tells apart is asked of a parameter.
class Sorting {
 public:
  // An error where nothing tells two groups apart.
  static Result<Sorting> make(std::span<const OptimizerGroup> groups) {
    for (std::size_t a = 0; a < groups.size(); ++a) {
      for (std::size_t b = a + 1; b < groups.size(); ++b) {
        if (!groups[a].is_like(groups[b])) continue;
        return fail(Code::kOptimizerUnsupported,
                    "optimizer: found parameter groups {} and {} alike, expected each to say what "
                    "it is for; convert without it (--optimizer drop)",
                    a, b);
      }
    }
    return Sorting(groups);
  }

  // What a parameter's group has to say.
  [[nodiscard]] OptimizerGroup wanted_group(const TensorDesc& parameter,
                                            const GroupRule& rule) const {
    OptimizerGroup wanted = group_of(parameter, rule);
    wanted.is_expert = wanted.is_expert && tells_experts_;
    wanted.has_own_rate = wanted.has_own_rate && tells_rates_;
    wanted.is_beside = wanted.has_betas;
    if (groups_.empty()) return wanted;
    if (rule.decays_alike && !tells_decay_) wanted.has_decay = groups_.front().has_decay;
    if (!tells_matrices_) wanted.has_betas = groups_.front().has_betas;
    if (!tells_beside_) wanted.is_beside = groups_.front().is_beside;
    return wanted;
  }

  [[nodiscard]] auto find(const OptimizerGroup& wanted) const {
    return std::ranges::find_if(groups_,
                                [&](const OptimizerGroup& each) { return each.is_like(wanted); });
  }

  [[nodiscard]] bool has_group(const TensorDesc& parameter, const GroupRule& rule) const {
    return find(wanted_group(parameter, rule)) != groups_.end();
  }

  // An error where a parameter has no group.
  [[nodiscard]] Result<Shares> sort(std::span<const TensorDesc> parameters,
                                    const GroupRule& rule) const {
    Shares shares(groups_.size());
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      const OptimizerGroup wanted = wanted_group(parameters[i], rule);
      const auto group = find(wanted);
      if (group == groups_.end()) {
        return fail(
            Code::kOptimizerUnsupported,
            "tensor {}: no parameter group {} weight decay{}{} exists for it; convert without "
            "the optimizer (--optimizer drop)",
            parameters[i].name, wanted.has_decay ? translated("with") : translated("without"),
            wanted.is_expert ? " of experts" : "",
            !tells_matrices_ || wanted.has_betas ? "" : " of Muon's");
      }
      shares[static_cast<std::size_t>(group - groups_.begin())].push_back(i);
    }
    return shares;
  }

  [[nodiscard]] bool tells_rates() const { return tells_rates_; }

  [[nodiscard]] bool fits(const Shares& shares) const {
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      if (shares[g].size() != groups_[g].parameters) return false;
    }
    return true;
  }

 private:
  explicit Sorting(std::span<const OptimizerGroup> groups)
      : groups_(groups), tells_matrices_(has_muon(groups)) {
    for (const OptimizerGroup& group : groups) {
      tells_experts_ |= group.is_expert;
      tells_rates_ |= group.has_own_rate;
      tells_decay_ |= group.has_decay != groups.front().has_decay;
      tells_beside_ |= group.is_beside != groups.front().is_beside;
    }
  }

  std::span<const OptimizerGroup> groups_;
  bool tells_experts_ = false;
  bool tells_rates_ = false;
  bool tells_decay_ = false;
  bool tells_matrices_;
  bool tells_beside_ = false;
};

std::string sizes_of(std::span<const OptimizerGroup> groups) {
  std::string text;
  for (const OptimizerGroup& group : groups) {
    text += translated("{}{}{}{} {} weight decay", text.empty() ? "" : ", ", group.parameters,
                       group.is_expert ? " of experts" : "",
                       group.has_own_rate ? " with a learning rate of their own" : "",
                       group.has_decay ? translated("with") : translated("without"));
  }
  return text;
}

std::string sizes_of(const Result<Shares>& shares, std::span<const OptimizerGroup> groups) {
  if (!shares) return "groups for all of them";
  std::vector<OptimizerGroup> expected(groups.begin(), groups.end());
  for (std::size_t g = 0; g < expected.size(); ++g) expected[g].parameters = (*shares)[g].size();
  return sizes_of(expected);
}

// The one that is told, and those that a run may have had besides what its arguments tell.
std::vector<GroupRule> rules_like(const GroupRule& told) {
  std::vector<OwnRate> rates = {told.own_rate};
  if (told.own_rate == OwnRate::kUnknown) {
    rates = {OwnRate::kTables, OwnRate::kMatrices, OwnRate::kVectors};
  }
  std::vector<GroupRule> rules;
  for (const OwnRate rate : rates) {
    for (const bool spares : {told.spares_embeddings, !told.spares_embeddings}) {
      for (const bool decays : {told.decays_query_key_norms, !told.decays_query_key_norms}) {
        rules.push_back({decays, spares, rate});
      }
    }
  }
  return rules;
}

}  // namespace

bool has_muon(std::span<const OptimizerGroup> groups) {
  return std::ranges::any_of(groups, [&](const OptimizerGroup& group) {
    return group.has_betas != groups.front().has_betas;
  });
}

bool has_adam_beside(std::span<const OptimizerGroup> groups) {
  return std::ranges::any_of(groups, [&](const OptimizerGroup& group) {
    return !group.is_same_optimizer(groups.front());
  });
}

bool is_table(std::string_view parameter) {
  return parameter.ends_with("word_embeddings.weight") ||
         parameter.ends_with("output_layer.weight");
}

OptimizerGroup group_of(const TensorDesc& parameter, const GroupRule& rule) {
  const std::string_view name = parameter.name;
  const bool is_small = parameter.shape.size() == 1 || name.ends_with(".bias");
  const bool is_query_key_norm = name.contains("q_layernorm.") || name.contains("k_layernorm.");
  const bool is_embedding = name.contains("embedding");
  // MuP counts the output layer among the embeddings.
  const bool is_vector = parameter.shape.size() <= 1 || is_embedding || is_table(name);
  OptimizerGroup group;
  group.is_expert = is_expert_tensor(name);
  group.has_decay = is_small ? is_query_key_norm && rule.decays_query_key_norms
                             : !(is_embedding && rule.spares_embeddings);
  switch (rule.own_rate) {
    case OwnRate::kMatrices:
      group.has_own_rate = !is_vector;
      break;
    case OwnRate::kVectors:
      group.has_own_rate = is_vector;
      break;
    case OwnRate::kTables:
    case OwnRate::kUnknown:
      group.has_own_rate = is_table(name);
      break;
  }
  group.has_betas = parameter.shape.size() != 2 || is_table(name);
  group.parameters = 1;
  return group;
}

Result<Shares> parameters_of_groups(std::span<const TensorDesc> parameters,
                                    std::span<const OptimizerGroup> groups, const GroupRule& told) {
  const Sorting sorting = SW_TRY(Sorting::make(groups));
  for (const bool decays_alike : {false, true}) {
    for (GroupRule rule : rules_like(told)) {
      rule.decays_alike = decays_alike;
      Result<Shares> shares = sorting.sort(parameters, rule);
      if (shares && sorting.fits(*shares)) return shares;
    }
  }
  const Result<Shares> expected = sorting.sort(parameters, told);
  std::size_t all = 0;
  for (const OptimizerGroup& group : groups) all += group.parameters;
  return fail(
      Code::kOptimizerUnsupported,
      "optimizer: found {} parameters in groups of {}, expected {} for the {} of the model; "
      "were parts of it frozen? convert without it (--optimizer drop)",
      all, sizes_of(groups), sizes_of(expected, groups), parameters.size());
}

Result<Shares> share_out(std::span<const TensorDesc> parameters,
                         std::span<const OptimizerGroup> groups, const GroupRule& rule) {
  const Sorting sorting = SW_TRY(Sorting::make(groups));
  if (!sorting.tells_rates() || rule.own_rate != OwnRate::kUnknown) {
    return sorting.sort(parameters, rule);
  }
  return fail(Code::kOptimizerUnsupported,
              "optimizer: found a parameter group with a learning rate of its own, and neither "
              "--decoupled-lr nor --use-mup in the run's arguments tells whose it is; convert "
              "without it (--optimizer drop)");
}

const TensorDesc* first_without_group(std::span<const TensorDesc> parameters,
                                      std::span<const OptimizerGroup> groups) {
  const Result<Sorting> sorting = Sorting::make(groups);
  if (!sorting) return nullptr;
  const std::vector<GroupRule> rules = rules_like({.own_rate = OwnRate::kUnknown});
  const auto first = std::ranges::find_if(parameters, [&](const TensorDesc& parameter) {
    return std::ranges::none_of(
        rules, [&](const GroupRule& rule) { return sorting->has_group(parameter, rule); });
  });
  return first == parameters.end() ? nullptr : &*first;
}

}  // namespace shardwright

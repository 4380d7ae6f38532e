// SPDX-License-Identifier: Apache-2.0
#include "format/legacy/torch_optimizer.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>

#include "base/fail.h"
#include "codec/torch_number.h"
#include "format/legacy/refuse_states.h"
#include "state/param_group.h"

namespace shardwright {
namespace {

using pickle::Kind;
using pickle::Value;

// What several parameters say of their states has to agree.
class States {
 public:
  States(const ReadableFile& file, const TorchFile& torch) : file_(file), torch_(torch) {}

  // Of one parameter of the group `group`. A weight without `master` is its own master weight.
  Result<StatePlaces> read(std::size_t group, const RankParameter& parameter, Value state,
                           std::optional<Value> master) {
    const LocatedTensor place =
        master ? SW_TRY(locate(*master, kStateKinds[0], parameter)) : parameter.place;
    if (place.dtype != DType::kF32) {
      return refuse_states("tensor {}: found {} and no master weight, expected float32",
                           parameter.desc.name, torch_name(place.dtype));
    }
    StatePlaces places = {{std::string(kStateKinds[0]), place}};
    for (std::size_t i = 0; i < state.size(); ++i) {
      const std::string kind(state.key(i).text());
      if (kind == "step") {
        SW_TRY(read_step(state.value(i), parameter));
      } else if (kind.empty() || kind == kStateKinds[0] || kind.find('.') != kind.npos) {
        return refuse_states("tensor {}: found a state '{}', expected a name", parameter.desc.name,
                             kind);
      } else if (!state.value(i).is_none()) {  // SGD's, before its first step
        places.push_back({kind, SW_TRY(locate(state.value(i), kind, parameter))});
      }
    }
    SW_TRY(check_like_its_group(group, places, parameter));
    return places;
  }

  [[nodiscard]] std::optional<std::int64_t> step() const { return step_; }

 private:
  // In one group all parameters have the same states.
  Status check_like_its_group(std::size_t group, const StatePlaces& places,
                              const RankParameter& parameter) {
    std::set<std::string> kinds;
    for (const StatePlace& place : places) kinds.insert(place.kind);
    const auto [known, is_new] = kinds_.try_emplace(group, kinds);
    if (known->second == kinds) return {};
    return refuse_states(
        "tensor {}: found the states {}, expected {} as of the others of its group",
        parameter.desc.name, fmt::join(kinds, ", "), fmt::join(known->second, ", "));
  }

  Result<LocatedTensor> locate(Value tensor, std::string_view kind,
                               const RankParameter& parameter) {
    if (!is_tensor(tensor)) {
      return refuse_states("tensor {}: found no tensor as its {}, expected one as of the weight",
                           parameter.desc.name, kind);
    }
    LocatedTensor place = SW_TRY(torch_.locate(tensor));
    if (place.dtype != DType::kF32 || !(place.shape == parameter.desc.shape)) {
      return refuse_states("tensor {}: found {} as {} {}, expected float32 {} as of the weight",
                           parameter.desc.name, kind, torch_name(place.dtype),
                           to_string(place.shape), to_string(parameter.desc.shape));
    }
    return place;
  }

  Status read_step(Value value, const RankParameter& parameter) {
    const std::optional<std::int64_t> step = SW_TRY(read_torch_count(file_, torch_, value));
    if (!step) {
      return refuse_states("tensor {}: found a step that is not a count", parameter.desc.name);
    }
    const std::int64_t count = *step;
    if (step_ && *step_ != count) {
      return refuse_states("tensor {}: found step {}, expected {} as of the other parameters",
                           parameter.desc.name, count, *step_);
    }
    step_ = count;
    return {};
  }

  const ReadableFile& file_;
  const TorchFile& torch_;
  std::map<std::size_t, std::set<std::string>> kinds_;  // by group
  std::optional<std::int64_t> step_;
};

}  // namespace

Result<TorchOptimizer> TorchOptimizer::open(const ReadableFile& file, const TorchFile& torch,
                                            Value optimizer) {
  TorchOptimizer opened(file, torch);
  const bool is_chain = optimizer.is(Kind::kList);
  for (std::size_t i = 0; i < (is_chain ? optimizer.size() : 1); ++i) {
    SW_TRY(opened.add(is_chain ? optimizer[i] : optimizer));
  }
  opened.groups_ = read_param_groups(opened.stored_groups_);
  return opened;
}

Status TorchOptimizer::add(Value dict) {
  Value inner = dict.find("optimizer");
  if (!inner) inner = dict.find("optimizer_state_dict");
  Value masters = dict.find("fp32_from_fp16_params");
  if (!masters) masters = dict.find("fp32_from_fp16");
  if (!inner && dict.find("state")) inner = dict;
  if (!inner.find("param_groups").is(Kind::kList)) {
    return refuse_states("it lacks the parameter groups of Megatron's optimizer");
  }
  return add_groups(inner.find("state"), inner.find("param_groups"), masters);
}

Status TorchOptimizer::add_groups(Value state, Value groups, Value masters) {
  has_states_ = has_states_ || state.size() > 0 || masters.size() > 0;
  std::unordered_map<std::int64_t, Value> by_number;
  for (std::size_t i = 0; i < state.size(); ++i) {
    if (const auto number = state.key(i).as_int()) by_number[*number] = state.value(i);
  }
  if (masters && masters.size() != groups.size()) {
    return refuse_states("found master weights of {} groups, expected {}", masters.size(),
                         groups.size());
  }
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const Value numbers = groups[g].find("params");
    stored_groups_.push_back(groups[g]);
    masters_.push_back(masters ? masters[g] : Value());
    std::vector<Value>& states = states_.emplace_back();
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      const auto number = numbers[i].as_int();
      const auto found = number ? by_number.find(*number) : by_number.end();
      // SGD without momentum keeps nothing of any parameter.
      if (found == by_number.end() && !by_number.empty()) {
        return refuse_states("parameter {} of group {} has no state; each must have one", i, g);
      }
      states.push_back(found == by_number.end() ? Value() : found->second);
    }
  }
  return {};
}

Result<RankOptimizer> TorchOptimizer::read(std::span<const RankParameter> parameters,
                                           std::span<const std::vector<std::size_t>> shares) const {
  RankOptimizer result;
  result.states.resize(parameters.size());
  result.weight_is_master.resize(parameters.size());
  States states(*file_, *torch_);
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    std::size_t next_master = 0;
    for (std::size_t i = 0; i < shares[g].size(); ++i) {
      const RankParameter& parameter = parameters[shares[g][i]];
      const bool is_own_master = !masters_[g] || parameter.desc.dtype == DType::kF32;
      std::optional<Value> master;
      if (!is_own_master) master = masters_[g][next_master++];
      result.weight_is_master[shares[g][i]] = is_own_master;
      result.states[shares[g][i]] = SW_TRY(states.read(g, parameter, states_[g][i], master));
    }
    if (masters_[g] && next_master != masters_[g].size()) {
      return refuse_states("found {} master weights in group {}, expected {}", masters_[g].size(),
                           g, next_master);
    }
  }
  result.step = states.step();
  result.has_adam_beside = has_adam_beside(groups_);
  result.has_own_masters = std::ranges::any_of(masters_, [](Value m) { return bool{m}; });
  return result;
}

}  // namespace shardwright

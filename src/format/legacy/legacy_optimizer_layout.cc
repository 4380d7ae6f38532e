// SPDX-License-Identifier: Apache-2.0
#include "format/legacy/legacy_optimizer_layout.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <string>

#include "base/fail.h"
#include "codec/torch_tensor.h"
#include "format/legacy/legacy_state.h"
#include "layout/state_name.h"
#include "state/param_group.h"

namespace shardwright {
namespace {

using pickle::Value;

// In which order a rank has an optimizer's groups. Since Megatron-Core 0.16 all ranks have one;
// before, each had its groups in the order of its own parameters and behind them, empty, those that
// only others have. Source: _get_param_groups in megatron/core/optimizer/__init__.py.
std::vector<std::size_t> order_of_groups(std::span<const Value> groups,
                                         std::span<const std::vector<std::size_t>> shares) {
  std::vector<std::size_t> order(groups.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const bool is_one_for_all = std::ranges::any_of(
      groups, [](Value group) { return static_cast<bool>(group.find("default_config")); });
  if (is_one_for_all) return order;
  std::ranges::stable_sort(order, {}, [&](std::size_t g) {
    return shares[g].empty() ? std::numeric_limits<std::size_t>::max() : shares[g].front();
  });
  return order;
}

}  // namespace

Result<Value> LegacyOptimizerLayout::make(Value state, std::optional<double> common_step,
                                          std::size_t first_key) {
  first_key_ = first_key;
  step_ = common_step.value_or(state.find("iteration").as_double().value_or(0));
  const Value source = state.find("optimizer");
  std::vector<Value> parts;
  for (std::int64_t number = 0;; ++number) {
    const Value part = source.find(number);
    if (!part) break;
    parts.push_back(part);
  }
  const bool is_chained = !parts.empty();
  if (!is_chained) parts.push_back(source);
  std::vector<Value> stored;
  for (const Value part : parts) {
    const std::vector<Value> list = param_groups_of(part);
    stored.insert(stored.end(), list.begin(), list.end());
  }
  const std::vector<OptimizerGroup> groups = read_param_groups(stored);
  if (groups.empty()) {
    return fail(Code::kStateUnreadable,
                "common state: the optimizer's parameter groups are missing; convert without it "
                "(--optimizer drop)");
  }
  std::vector<TensorDesc> descs;
  for (const TrainedParameter& parameter : parameters_) descs.push_back(parameter.desc);
  const auto shares = SW_TRY(share_out(descs, groups, read_group_rule(state.find("args"), stored)));
  std::vector<Value> made;
  std::size_t next = 0;
  for (const Value part : parts) {
    const std::size_t count = param_groups_of(part).size();
    made.push_back(SW_TRY(make_part(part, std::span(shares).subspan(next, count))));
    next += count;
  }
  return is_chained ? document_.list(made) : made.front();
}

// Its settings, without the step where parameters have one each.
Result<Value> LegacyOptimizerLayout::copy_group(Value group) {
  const Value copy = document_.dict();
  for (std::size_t i = 0; i < group.size(); ++i) {
    const std::string_view key = group.key(i).text();
    if (key == "params" || (key == "step" && has_own_steps(group))) continue;
    if (has_storage(document_, group.value(i))) {
      return fail(Code::kStateUnreadable,
                  "common state: found '{}' of a parameter group to be a tensor, expected a plain "
                  "value; convert without the optimizer (--optimizer drop)",
                  key);
    }
    document_.add_pair(copy, group.key(i), group.value(i));
  }
  return copy;
}

Result<Value> LegacyOptimizerLayout::make_part(Value source,
                                               std::span<const std::vector<std::size_t>> shares) {
  const std::vector<Value> list = param_groups_of(source);
  const Value states = document_.dict();
  std::vector<Value> groups;
  std::int64_t number = 0;
  const std::vector<std::size_t> order = order_of_groups(list, shares);
  for (const std::size_t g : order) {
    SW_TRY(check_alike(shares[g]));
    const Value group = SW_TRY(copy_group(list[g]));
    std::vector<Value> numbers;
    for (const std::size_t parameter : shares[g]) {
      numbers.push_back(document_.integer(number++));
      document_.add_pair(states, numbers.back(), make_state(list[g], parameter));
    }
    document_.set(group, "params", document_.list(numbers));
    groups.push_back(group);
  }
  const Value inner = document_.dict();
  document_.set(inner, "state", states);
  document_.set(inner, "param_groups", document_.list(groups));
  if (!is_mixed_) return inner;
  std::vector<Value> masters;
  for (const std::size_t g : order) {
    std::vector<Value> of_group;
    for (const std::size_t parameter : shares[g]) {
      if (parameters_[parameter].desc.dtype == DType::kF32) continue;  // its own master weight
      of_group.push_back(make_tensor(parameter, kStateKinds[0]));
    }
    masters.push_back(document_.list(of_group));
  }
  const Value outer = document_.dict();
  document_.set(outer, "optimizer", inner);
  const Value scaler = source.find("grad_scaler");
  const bool is_tensor = scaler && has_storage(document_, scaler);
  if (scaler && !is_tensor) document_.set(outer, "grad_scaler", scaler);
  drops_loss_scale_ |= is_tensor;
  document_.set(outer, "fp32_from_fp16_params", document_.list(masters));
  return outer;
}

// Half of an optimizer's states is no optimizer's.
Status LegacyOptimizerLayout::check_alike(std::span<const std::size_t> share) const {
  for (const std::size_t parameter : share) {
    const TrainedParameter& one = parameters_[parameter];
    const TrainedParameter& first = parameters_[share.front()];
    if (one.states == first.states) continue;
    return fail(
        Code::kOptimizerUnsupported,
        "tensor {}: found the optimizer states {}, expected {} as of {}, which is in the "
        "same parameter group; convert without them (--optimizer drop)",
        one.desc.name,
        one.states.empty() ? translated("none") : fmt::to_string(fmt::join(one.states, ", ")),
        first.states.empty() ? translated("none") : fmt::to_string(fmt::join(first.states, ", ")),
        first.desc.name);
  }
  return {};
}

Value LegacyOptimizerLayout::make_state(Value group, std::size_t parameter) {
  const Value state = document_.dict();
  if (has_own_steps(group)) {
    const double step = group.find("step").as_double().value_or(step_);
    document_.set(state, "step", make_tensor(parameter, "step", step));
  }
  for (const std::string& kind : parameters_[parameter].states) {
    document_.set(state, kind, make_tensor(parameter, kind));
  }
  return state;
}

Value LegacyOptimizerLayout::make_tensor(std::size_t parameter, std::string_view kind,
                                         std::optional<double> step) {
  const std::string key = std::to_string(first_key_ + storages_.size());
  storages_.push_back({parameter, std::string(kind), step});
  return make_torch_tensor(document_, DType::kF32,
                           step ? Dims{} : parameters_[parameter].desc.shape, key);
}

}  // namespace shardwright

// SPDX-License-Identifier: Apache-2.0
#include "report/tensor_place.h"

#include <algorithm>

#include "layout/layer_name.h"
#include "layout/state_name.h"
#include "plan/canonical.h"

namespace shardwright {
namespace {

TensorRole role_of_kind(std::string_view kind) {
  if (kind == "param") return TensorRole::kMaster;
  if (kind == "exp_avg") return TensorRole::kFirstMoment;
  if (kind == "exp_avg_sq") return TensorRole::kSecondMoment;
  return TensorRole::kOtherState;
}

// The modules that a name outside of layers begins with: at most two, and never its last two
// words, which are the module's own name and `weight`.
std::size_t component_length(std::string_view name) {
  const auto words = static_cast<int>(std::ranges::count(name, '.')) + 1;
  const int wanted = std::clamp(words - 2, 1, 2);
  std::size_t end = name.find('.');
  for (int word = 1; word < wanted; ++word) end = name.find('.', end + 1);
  return std::min(end, name.size());
}

}  // namespace

std::int64_t TensorPlace::layer_number() const {
  constexpr std::int64_t kOutside = -1;
  constexpr std::int64_t kStacked = -2;
  return is_stacked ? kStacked : layer.value_or(kOutside);
}

TensorPlace place_of_tensor(std::string_view name) {
  TensorPlace place;
  if (const auto state = split_state_name(name)) {
    place.role = role_of_kind(state->kind);
    name = state->tensor;
  } else if (is_optimizer_name(name)) {
    place.role = TensorRole::kOtherState;
    place.component = "optimizer";
    place.kind = name;
    return place;
  }
  if (const auto layer = split_layer_name(name)) {
    constexpr std::string_view kLayers = ".layers";
    std::string_view stack = layer->stack;
    if (stack.ends_with(kLayers)) stack.remove_suffix(kLayers.size());
    place.component = stack;
    place.layer = layer->index;
    place.is_stacked = !layer->index;
    place.kind = layer->rest;
    return place;
  }
  const std::size_t end = component_length(name);
  place.component = name.substr(0, end);
  place.kind = end < name.size() ? name.substr(end + 1) : name;
  return place;
}

}  // namespace shardwright

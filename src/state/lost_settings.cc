// SPDX-License-Identifier: Apache-2.0
#include "state/lost_settings.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "base/translated.h"
#include "layout/expert_names.h"
#include "layout/layer_name.h"
#include "layout/optimizer_groups.h"
#include "layout/state_name.h"
#include "state/group_settings.h"
#include "state/param_group.h"
#include "state/state_document.h"

namespace shardwright {
namespace {

// Without the axes that count layers and experts: a vector of each layer is no matrix.
TensorDesc parameter_of(const StateName& state, const TensorDesc& stored) {
  const auto layer = split_layer_name(state.tensor);
  int counting = layer && !layer->index ? 1 : 0;
  if (is_of_routed_experts(state.tensor)) ++counting;
  TensorDesc parameter{std::string(state.tensor), stored.dtype, {}};
  counting = std::clamp(stored.shape.size() - 1, 0, counting);
  for (int axis = counting; axis < stored.shape.size(); ++axis) {
    parameter.shape.push_back(stored.shape[axis]);
  }
  return parameter;
}

std::vector<TensorDesc> trained_parameters(const Catalog& catalog) {
  std::vector<TensorDesc> parameters;
  for (const StoredTensor& tensor : catalog.tensors) {
    const std::optional<StateName> state = split_state_name(tensor.desc.name);
    if (!state || state->kind == "step" || state->kind == kStateKinds[0]) continue;
    parameters.push_back(parameter_of(*state, tensor.desc));
  }
  return parameters;
}

constexpr const char* kNoGroups =
    "common state: the optimizer's parameter groups are missing; convert without it "
    "(--optimizer drop)";

constexpr const char* kNoStates =
    "common state: the optimizer has parameter groups, and none of its states is stored; convert "
    "without it (--optimizer drop)";

// Read or not.
bool has_any_state(const Checkpoint& checkpoint, const Catalog& catalog) {
  if (checkpoint.has_unread_optimizer || !checkpoint.unread_optimizer_file.empty()) return true;
  return std::ranges::any_of(catalog.tensors, [](const StoredTensor& tensor) {
    return split_state_name(tensor.desc.name).has_value();
  });
}

// Of an optimizer that can't be without states: SGD's may have none.
bool has_groups_of_adam(pickle::Value chain) {
  for (const pickle::Value optimizer : chained_optimizers(chain)) {
    for (const pickle::Value group : param_groups_of(optimizer)) {
      if (group.find("betas")) return true;
    }
  }
  return false;
}

std::vector<OptimizerGroup> groups_of_all(pickle::Value chain) {
  std::vector<OptimizerGroup> groups;
  for (const pickle::Value optimizer : chained_optimizers(chain)) {
    for (const pickle::Value group : param_groups_of(optimizer)) {
      groups.push_back(read_param_group(group));
    }
  }
  return groups;
}

}  // namespace

Result<LostSettings> find_lost_settings(const Checkpoint& checkpoint, const Catalog& catalog) {
  LostSettings lost;
  const bool is_lost = checkpoint.common_state.empty();
  if (is_lost && !checkpoint.location.traits.needs_common_state) return lost;
  const std::vector<TensorDesc> parameters = trained_parameters(catalog);
  if (is_lost) {
    if (!parameters.empty()) lost.groups = kNoGroups;
    return lost;
  }
  if (parameters.empty() && has_any_state(checkpoint, catalog)) return lost;
  const StateDocument state = SW_TRY(StateDocument::read(checkpoint.common_state));
  if (parameters.empty()) {
    // Before the first step Adam has none either.
    const bool has_begun = state.dict().find("iteration").as_int() != 0;
    if (has_begun && has_groups_of_adam(state.dict().find("optimizer"))) lost.states = kNoStates;
    return lost;
  }
  const std::vector<OptimizerGroup> groups = groups_of_all(state.dict().find("optimizer"));
  if (groups.empty()) {
    lost.groups = kNoGroups;
  } else if (const TensorDesc* first = first_without_group(parameters, groups);
             first != nullptr && !checkpoint.location.traits.has_state_entries) {
    lost.others.push_back(
        translated("common state: no parameter group of the optimizer is for {}, which has states",
                   first->name));
  }
  if (!state.dict().find("opt_param_scheduler")) {
    lost.others.emplace_back(
        "common state: opt_param_scheduler is missing, so a run that goes on begins its learning "
        "rate schedule anew");
  }
  return lost;
}

}  // namespace shardwright

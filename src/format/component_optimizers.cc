// SPDX-License-Identifier: Apache-2.0
#include "format/component_optimizers.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "base/fail.h"
#include "layout/bucket_name.h"
#include "layout/state_name.h"
#include "model/component_names.h"
#include "plan/canonical.h"
#include "state/component_groups.h"
#include "state/loss_scale.h"

namespace shardwright {
namespace {

// A distributed optimizer calls its master weights `param`. Where they are `fp32_param`, the step
// is in the common state of the run's first rank and not in the groups; other prefixes stand for
// optimizers that are chained otherwise than Megatron-Core 0.14 and newer chain them.
Status check_kind(std::string_view name, std::string_view prefix) {
  constexpr std::string_view expected = "optimizer.state.";
  if (prefix.starts_with(expected) && prefix != "optimizer.state.fp32_param.") return {};
  return fail(Code::kOptimizerUnsupported,
              "tensor {}: found the state of another optimizer than the distributed one, expected "
              "{}param and its like; convert without optimizer states (--optimizer drop), or to "
              "the kind of model that they are of",
              name, expected);
}

// The components in the order of their routes; a tower and its projector are two of one.
std::vector<std::string> components_of(std::span<const ComponentRoute> routes) {
  std::vector<std::string> names;
  for (const ComponentRoute& route : routes) {
    if (std::ranges::find(names, route.name) == names.end()) names.push_back(route.name);
  }
  return names;
}

// The names of the components that have states.
Result<std::set<std::string>> owners_of_states(const Catalog& source) {
  std::set<std::string> owners;
  for (const StoredTensor& tensor : source.tensors) {
    const std::string& name = tensor.desc.name;
    const std::string_view owner = component_of_state(name);
    if (owner.empty()) continue;
    const std::optional<StateName> parts = split_state_name(name);
    SW_TRY(check_kind(name, parts->prefix.substr(kMimoStates.size() + owner.size() + 1)));
    owners.emplace(owner);
  }
  return owners;
}

}  // namespace

Status check_component_states(const Catalog& source) {
  const auto refuse = [](const std::string& name) {
    return fail(Code::kOptimizerUnsupported,
                "entry {}: found a flat buffer of a component's optimizer, expected states named "
                "like model tensors; convert without them (--optimizer drop) or re-save them with "
                "--dist-ckpt-optim-fully-reshardable",
                name);
  };
  for (const StoredTensor& tensor : source.tensors) {
    const std::string& name = tensor.desc.name;
    if (!component_of_state(name).empty() && !split_state_name(name)) return refuse(name);
  }
  for (const StoredObject& object : source.objects) {
    const std::string_view owner = component_of_state(object.name);
    if (owner.empty()) continue;
    const auto domain = split_domain_name(
        std::string_view(object.name).substr(kMimoStates.size() + owner.size() + 1));
    if (domain && domain->rest.starts_with("param_state/")) return refuse(object.name);
  }
  return {};
}

Status join_optimizers(Checkpoint& source, std::vector<std::string>& notes) {
  std::set<std::string> owners = SW_TRY(owners_of_states(source.catalog));
  if (owners.empty()) return {};
  const std::string all = fmt::format("{}", fmt::join(owners, ", "));
  bool has_scale = false;
  for (const StoredObject& object : source.catalog.objects) {
    const auto entry = split_component_entry(object.name);
    if (entry && entry->content == "param_groups") owners.erase(std::string(entry->component));
    has_scale |= entry && entry->content == "grad_scaler";
  }
  if (!owners.empty() || source.common_state.empty()) {
    return fail(
        Code::kOptimizerUnsupported,
        "{}: found optimizer states and no {}; convert without them (--optimizer drop)",
        source.location.path,
        owners.empty() ? "common state" : translated("parameter groups of ") + *owners.begin());
  }
  source.common_state =
      SW_TRY(join_component_groups(source.common_state, source.catalog, *source.files));
  std::erase_if(source.catalog.objects, [](const StoredObject& object) {
    return !component_of_state(object.name).empty();
  });
  notes.push_back(translated("the optimizers of {} become one", all));
  if (has_scale) notes.emplace_back(kLossScaleNote);
  return {};
}

Status share_optimizer(std::span<const ComponentRoute> routes, TargetParts& parts,
                       std::vector<std::string>& notes) {
  bool has_states = false;
  for (const DraftTensor& tensor : parts.tensors) {
    if (!is_optimizer_name(tensor.desc.name)) continue;
    const std::optional<StateName> name = split_state_name(tensor.desc.name);
    SW_TRY(check_kind(tensor.desc.name, name ? name->prefix : std::string_view()));
    has_states = true;
  }
  if (!has_states) return {};
  const std::vector<std::string> components = components_of(routes);
  ComponentGroups groups = SW_TRY(share_component_groups(parts.common_state, components));
  parts.common_state = std::move(groups.common_state);
  for (auto& [name, bytes] : groups.entries) {
    parts.new_objects.emplace_back(std::move(name),
                                   std::make_shared<const std::string>(std::move(bytes)));
  }
  for (const ComponentRoute& route : routes) {
    parts.wrappers.emplace(root_of_component(route.path), kMimoWrapper);
  }
  notes.push_back(
      translated("{} get an optimizer each, with the parameter groups of the source; names have "
                 "'{}' behind each component, as those of a training run whose components are "
                 "wrapped once",
                 fmt::join(components, ", "), kMimoWrapper));
  if (groups.drops_loss_scale) notes.emplace_back(kLossScaleNote);
  return {};
}

}  // namespace shardwright

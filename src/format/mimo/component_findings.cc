// SPDX-License-Identifier: Apache-2.0
#include "format/mimo/component_findings.h"

#include <algorithm>
#include <map>

#include "format/mimo/component_table.h"
#include "layout/finding_rules.h"
#include "layout/texts.h"
#include "model/component_names.h"
#include "state/recorded_run.h"
#include "state/run_config.h"

namespace shardwright {
namespace {

// What Megatron-Bridge's run_config.yaml says of each component, in its `model` section.
std::vector<RecordedComponent> components_in(const Arguments& config) {
  constexpr std::string_view kModules = "megatron_mimo_parallelism_config.module_parallelisms.";
  std::map<std::string, RecordedComponent> found;
  for (const auto& [key, value] : config) {
    if (!key.starts_with(kModules)) continue;
    const std::string rest = key.substr(kModules.size());
    const std::string name = rest.substr(0, rest.find('.'));
    if (name.size() == rest.size()) continue;
    const std::string prefix = std::string(kModules) + name + ".";
    const auto size = [&](std::string_view field) {
      return number_of(config, {prefix + std::string(field)});
    };
    RecordedComponent& component = found[name];
    component.name = name;
    component.sizes = {.tensor = size("tensor_model_parallel_size"),
                       .pipeline = size("pipeline_model_parallel_size"),
                       .expert = size("expert_model_parallel_size"),
                       .expert_tensor = size("expert_tensor_parallel_size"),
                       .data = size("data_parallel_size")};
    component.context = size("context_parallel_size");
    component.rank_offset = size("rank_offset");
  }
  std::vector<RecordedComponent> components;
  for (auto& [name, component] : found) components.push_back(std::move(component));
  return components;
}

std::vector<RecordedComponent> components_of_run(const Checkpoint& checkpoint,
                                                 Diagnosis& diagnosis) {
  if (checkpoint.run_config.empty()) return {};
  const Result<Arguments> config = read_run_config(checkpoint.run_config);
  if (config) return components_in(*config);
  diagnosis.evidence.push_back({config.error().text(), config.error().text()});
  return {};
}

}  // namespace

void add_components(const Checkpoint& checkpoint, Diagnosis& diagnosis) {
  std::map<std::string, std::uint64_t> tensors;
  for (const StoredTensor& tensor : checkpoint.catalog.tensors) {
    const std::string_view name = component_of_tensor(tensor.desc.name);
    if (!name.empty()) ++tensors[std::string(name)];
  }
  ComponentTable table = read_component_table(checkpoint);
  std::vector<RecordedComponent> components =
      table.components ? *std::move(table.components) : components_of_run(checkpoint, diagnosis);
  if (components.empty()) {
    diagnosis.evidence.push_back(phrase("components.unrecorded"));
  }
  for (const auto& [name, count] : tensors) {
    const auto known = std::ranges::find(components, name, &RecordedComponent::name);
    if (known != components.end()) continue;
    components.push_back({});
    components.back().name = name;
  }
  for (RecordedComponent& component : components) {
    component.tensors = tensors[component.name];
    if (*component.tensors > 0) continue;
    diagnosis.complete = false;
    diagnosis.evidence.push_back(phrase("components.empty", {{"name", component.name}}));
  }
  diagnosis.components = std::move(components);
  for (const Error& error : table.defects) {
    add_finding(diagnosis, "L50", {{"error", error.message}});
  }
}

}  // namespace shardwright

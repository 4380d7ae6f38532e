// SPDX-License-Identifier: Apache-2.0
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <set>
#include <unordered_map>

#include "base/fail.h"
#include "convert/mimo_optimizer.h"
#include "convert/target.h"
#include "layout/placement.h"
#include "layout/state_name.h"
#include "plan/canonical.h"

namespace shardwright {
namespace {

// Towers lie on the first of their component's stages. The reference lets each stage write the
// whole of them.
ParallelConfig parallel_of(const Component& component) {
  ParallelConfig parallel;
  parallel.tensor = component.tensor;
  parallel.pipeline = component.pipeline;
  parallel.expert = component.expert;
  parallel.expert_tensor = component.expert_tensor;
  return parallel;
}

// One component's ranks and its own placement on them.
struct Home {
  const Component* component = nullptr;
  std::optional<Placement> placement;
};

class ComponentPlacer {
 public:
  ComponentPlacer(const TargetParts& parts, const ComponentLayout& layout,
                  std::span<const ComponentRoute> routes)
      : parts_(parts), layout_(layout), routes_(routes) {}

  Result<PlacedParts> place() {
    SW_TRY(make_homes());
    PlacedParts placed;
    for (const DraftTensor& tensor : parts_.tensors) {
      const Home& home = SW_TRY(home_of(tensor.desc.name));
      // A state is cut as its tensor is.
      TensorDesc model = tensor.desc;
      if (const auto state = split_state_name(tensor.desc.name)) model.name = state->tensor;
      std::vector<OwnedChunk> chunks = SW_TRY(home.placement->place(model));
      for (OwnedChunk& chunk : chunks) chunk.owner = rank_in_run(*home.component, chunk.owner);
      TensorDesc desc = tensor.desc;
      desc.name = target_name(desc.name);
      placed.tensors.push_back({std::move(desc), std::move(chunks)});
    }
    for (const StoredObject& object : parts_.copied_objects) {
      placed.objects.push_back(SW_TRY(place_object(object.name, object.range.length)));
    }
    for (const auto& [name, bytes] : parts_.new_objects) {
      placed.objects.push_back(SW_TRY(place_object(name, bytes.size())));
    }
    return placed;
  }

 private:
  [[nodiscard]] std::string component_of(std::string_view name) const {
    if (const std::string_view owner = component_of_state(name); !owner.empty()) {
      return std::string(owner);
    }
    const std::optional<StateName> state = split_state_name(name);
    const ComponentRoute* route = route_of(routes_, state ? state->tensor : name);
    return route == nullptr ? "language" : route->name;
  }

  [[nodiscard]] std::string target_name(std::string_view name) const {
    if (const std::optional<StateName> state = split_state_name(name)) {
      return fmt::format("mimo.{}.{}{}", component_of(name), state->prefix,
                         target_name(state->tensor));
    }
    if (route_of(routes_, name) == nullptr) return std::string(name);
    return with_wrappers(parts_.wrappers, mimo_name(routes_, name));
  }

  Status make_homes() {
    std::unordered_map<std::string, std::vector<TensorDesc>> descs;
    for (const DraftTensor& tensor : parts_.tensors) {
      if (is_optimizer_name(tensor.desc.name)) continue;
      descs[component_of(tensor.desc.name)].push_back(tensor.desc);
    }
    for (const Component& component : layout_.components) {
      Home& home = homes_[component.name];
      home.component = &component;
      home.placement = SW_TRY(Placement::make(descs[component.name], parallel_of(component)));
    }
    return {};
  }

  [[nodiscard]] Result<std::reference_wrapper<const Home>> home_of(std::string_view name) const {
    const auto found = homes_.find(component_of(name));
    if (found != homes_.end()) return std::cref(found->second);
    return fail(Code::kUnmatchedTarget,
                "tensor {}: found no ranks for its component; give --component {}=tp=N", name,
                component_of(name));
  }

  // Ranks of a placement count tensor first and pipeline last; in a component there are all
  // data-parallel and context ranks of a stage between two stages.
  [[nodiscard]] std::int64_t rank_in_run(const Component& component, std::int64_t rank) const {
    const std::int64_t stage_width =
        homes_.at(component.name).placement->world_size() / parallel_of(component).pipeline;
    const std::int64_t own_width = component.tensor * component.context * component.data;
    return component.rank_offset + rank / stage_width * own_width + rank % stage_width;
  }

  Result<TorchDistObject> place_object(std::string_view name, std::uint64_t bytes) const {
    const Home& home = SW_TRY(home_of(name));
    return TorchDistObject{target_name(name), bytes,
                           rank_in_run(*home.component, home.placement->rank_of_object(name))};
  }

  const TargetParts& parts_;
  const ComponentLayout& layout_;
  std::span<const ComponentRoute> routes_;
  std::unordered_map<std::string, Home> homes_;
};

// Each name once, in order.
std::string names_of(const auto& list) {
  std::set<std::string> names;
  for (const auto& item : list) names.insert(item.name);
  return fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace

Status check_components(const std::string& family, std::span<const ComponentRoute> routes,
                        const ComponentLayout& layout) {
  if (routes.empty()) {
    return fail(Code::kNoFamily,
                "family {}: found no components, expected a multimodal family whose mapping file "
                "lists them",
                family);
  }
  for (const Component& component : layout.components) {
    if (std::ranges::find(routes, component.name, &ComponentRoute::name) == routes.end()) {
      return fail(Code::kUsage, "--component {}: found no such part in {}, expected {}",
                  component.name, family, names_of(routes));
    }
  }
  for (const ComponentRoute& route : routes) {
    if (layout.find(route.name) == nullptr) {
      return fail(Code::kUsage, "--component: found {}, expected each part of {}: give {}=tp=N too",
                  names_of(layout.components), family, route.name);
    }
  }
  return {};
}

Result<PlacedParts> place_components(const TargetParts& parts, const ComponentLayout& layout,
                                     std::span<const ComponentRoute> routes) {
  return ComponentPlacer(parts, layout, routes).place();
}

}  // namespace shardwright

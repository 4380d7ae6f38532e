// SPDX-License-Identifier: Apache-2.0
#include "format/mimo/mimo_target.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <set>
#include <unordered_map>

#include "base/fail.h"
#include "format/component_optimizers.h"
#include "format/mimo/component_table.h"
#include "format/torch_dist/torch_dist_target.h"
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

// Puts each component on its own ranks and under its route's path, the states of its optimizer
// where their tensors are and under `mimo.<component>.`. What no route leads to (`hf_extra.*`) goes
// with the language model.
class ComponentPlacer {
 public:
  explicit ComponentPlacer(const TargetParts& parts) : parts_(parts) {}

  // Errors: kUnmatchedTarget for a component that the layout lacks, kNotDivisible.
  Result<PlacedParts> place() {
    SW_TRY(make_homes());
    PlacedParts placed;
    for (const DraftTensor& tensor : parts_.tensors) {
      const Home& home = SW_TRY(home_of(tensor.desc.name));
      // A state is cut as its tensor is.
      TensorDesc model = tensor.desc;
      if (const auto state = split_state_name(tensor.desc.name)) model.name = state->tensor;
      OwnedChunks chunks = SW_TRY(home.placement->place(model));
      for (std::size_t i = 0; i < chunks.size(); ++i) {
        chunks.set_owner(i, rank_in_run(*home.component, chunks.owner(i)));
      }
      TensorDesc desc = tensor.desc;
      desc.name = target_name(desc.name);
      placed.tensors.push_back({std::move(desc), std::move(chunks)});
    }
    for (const StoredObject& object : parts_.copied_objects) {
      placed.objects.push_back(SW_TRY(place_object(object.name, object.range.length)));
    }
    for (const auto& [name, bytes] : parts_.new_objects) {
      placed.objects.push_back(SW_TRY(place_object(name, bytes->size())));
    }
    return placed;
  }

 private:
  [[nodiscard]] std::string component_of(std::string_view name) const {
    if (const std::string_view owner = component_of_state(name); !owner.empty()) {
      return std::string(owner);
    }
    const std::optional<StateName> state = split_state_name(name);
    const ComponentRoute* route = route_of(parts_.routes, state ? state->tensor : name);
    return route == nullptr ? "language" : route->name;
  }

  [[nodiscard]] std::string target_name(std::string_view name) const {
    if (const std::optional<StateName> state = split_state_name(name)) {
      return fmt::format("mimo.{}.{}{}", component_of(name), state->prefix,
                         target_name(state->tensor));
    }
    if (route_of(parts_.routes, name) == nullptr) return std::string(name);
    return with_wrappers(parts_.wrappers, mimo_name(parts_.routes, name));
  }

  Status make_homes() {
    std::unordered_map<std::string, std::vector<TensorDesc>> descs;
    for (const DraftTensor& tensor : parts_.tensors) {
      if (is_optimizer_name(tensor.desc.name)) continue;
      descs[component_of(tensor.desc.name)].push_back(tensor.desc);
    }
    for (const Component& component : parts_.components.components) {
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
                "tensor {}: its component has no ranks; give --component {}=tp=N", name,
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
  std::unordered_map<std::string, Home> homes_;
};

// Each name once, in order.
std::string names_of(const auto& list) {
  std::set<std::string> names;
  for (const auto& item : list) names.insert(item.name);
  return fmt::format("{}", fmt::join(names, ", "));
}

// Whether each component that the caller gave is one of the family's.
Status check_components(const std::string& family, std::span<const ComponentRoute> routes,
                        const ComponentLayout& layout) {
  if (routes.empty()) {
    return fail(Code::kNoFamily,
                "family {} is not multimodal: its mapping file lists no components", family);
  }
  for (const Component& component : layout.components) {
    if (std::ranges::find(routes, component.name, &ComponentRoute::name) == routes.end()) {
      return fail(Code::kUsage, "--component {}: {} has no such component; it has {}",
                  component.name, family, names_of(routes));
    }
  }
  return {};
}

// Whether they are those that have tensors, both ways: a model may lack a tower that others of its
// family have.
Status check_component_tensors(const std::string& family, const TargetParts& parts) {
  std::set<std::string, std::less<>> owners;
  for (const DraftTensor& tensor : parts.tensors) {
    const ComponentRoute* route = route_of(parts.routes, tensor.desc.name);
    if (route != nullptr) owners.insert(route->name);
  }
  for (const ComponentRoute& route : parts.routes) {
    const bool is_given = parts.components.find(route.name) != nullptr;
    if (is_given == owners.contains(route.name)) continue;
    if (is_given) {
      return fail(Code::kUsage, "--component {}: the source has no tensors of it; leave it out",
                  route.name);
    }
    return fail(Code::kUsage, "--component: {} are not all parts of {}; give {}=tp=N too",
                names_of(parts.components.components), family, route.name);
  }
  return {};
}

// REQUIRES: check_components.
std::vector<ComponentRanks> ranks_of_components(std::span<const ComponentRoute> routes,
                                                const ComponentLayout& layout) {
  std::vector<ComponentRanks> ranks;
  for (const Component& c : layout.components) {
    const auto route = std::ranges::find(routes, c.name, &ComponentRoute::name);
    ranks.push_back({{c.name, c.tensor, c.pipeline, c.data, c.context, c.expert, c.expert_tensor,
                      c.rank_offset},
                     route->path});
  }
  return ranks;
}

class MimoTarget : public Target {
 public:
  MimoTarget()
      : Target({.name = "mimo",
                .names = TargetNames::kMegatron,
                .has_components = true,
                .is_of_fixed_ranks = true,
                .has_run_config = true,
                .backend = "torch_dist",
                .hf_folder = "iter_0000000/hf/"}) {}

  Status settle_sizes(ConvertRequest& request, TargetParts& parts) const override {
    ComponentLayout& layout = parts.components;
    layout = SW_TRY(solve_component_layout(request.components, request.world_size));
    const Component& language = *layout.find("language");
    request.parallel = {language.tensor, language.pipeline, 1, language.expert,
                        language.expert_tensor};
    return {};
  }

  Status take_family(const Mapping& family, TargetParts& parts) const override {
    parts.routes = family.components;
    return check_components(family.family, parts.routes, parts.components);
  }

  Status check_tensors(const std::string& family, const TargetParts& parts) const override {
    return check_component_tensors(family, parts);
  }

  std::vector<ComponentRanks> components(const TargetParts& parts) const override {
    return ranks_of_components(parts.routes, parts.components);
  }

  Status lay_out(const ConvertRequest& /*request*/, TargetParts& parts, Plan& plan,
                 std::vector<std::string>& notes) const override {
    parts.files.push_back({parts.folder + std::string(kComponentTable),
                           write_component_table(components(parts), parts.components.world)});
    if (!parts.has_component_states) SW_TRY(share_optimizer(parts.routes, parts, notes));
    PlacedParts placed = SW_TRY(ComponentPlacer(parts).place());
    return plan_torch_dist(parts, std::move(placed), plan);
  }
};

}  // namespace

const Target& mimo_target() {
  static const MimoTarget target;
  return target;
}

}  // namespace shardwright

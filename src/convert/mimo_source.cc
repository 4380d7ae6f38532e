// SPDX-License-Identifier: Apache-2.0
#include "convert/mimo_source.h"

#include <algorithm>
#include <set>

#include "base/fail.h"
#include "layout/state_name.h"

namespace shardwright {
namespace {

constexpr std::string_view kModalities = "modality_submodules.";
constexpr std::string_view kLanguage = "language_model.";
constexpr std::string_view kWrapper = "module.";
constexpr std::string_view kStates = "mimo.";

// The length of a component's root in a name: `language_model.` or `modality_submodules.images.`;
// 0 for names of other things.
std::size_t root_length(std::string_view name) {
  if (name.starts_with(kLanguage)) return kLanguage.size();
  if (!name.starts_with(kModalities)) return 0;
  const std::size_t dot = name.find('.', kModalities.size());
  return dot == std::string_view::npos ? 0 : dot + 1;
}

// Every route of the families, each once.
std::vector<ComponentRoute> all_routes(std::span<const Mapping> mappings) {
  std::vector<ComponentRoute> routes;
  for (const Mapping& mapping : mappings) {
    for (const ComponentRoute& route : mapping.components) {
      if (std::ranges::find(routes, route) == routes.end()) routes.push_back(route);
    }
  }
  return routes;
}

std::string known_paths(std::span<const ComponentRoute> routes) {
  std::set<std::string> paths;
  for (const ComponentRoute& route : routes) paths.insert(route.path);
  std::string text;
  for (const std::string& path : paths) text += (text.empty() ? "" : ", ") + path;
  return text;
}

class Renaming {
 public:
  explicit Renaming(std::span<const Mapping> mappings) : routes_(all_routes(mappings)) {}

  Status rename(std::string& name) {
    const std::string_view owner = component_of_state(name);
    if (!owner.empty()) return rename_state(std::string(owner), name);
    if (root_length(name) == 0) return {};
    std::string renamed = SW_TRY(standard(name));
    if (!seen_.insert(renamed).second) {
      return fail(Code::kDuplicateName, "tensor {}: found it under two names, with and without {}",
                  name, kWrapper);
    }
    name = std::move(renamed);
    return {};
  }

  [[nodiscard]] Wrappers take_wrappers() && { return std::move(wrappers_); }

 private:
  // Only tensors are named like the model's; a component's other entries are its own.
  Status rename_state(const std::string& owner, std::string& name) {
    const std::optional<StateName> parts = split_state_name(name);
    if (!parts || root_length(parts->tensor) == 0) return {};
    const std::string tensor = SW_TRY(standard(parts->tensor));
    const ComponentRoute* route = route_of(routes_, tensor);
    if (route == nullptr || route->name != owner) {
      return fail(Code::kMetadataCorrupt,
                  "tensor {}: found the state of a tensor of {} in the optimizer of {}", name,
                  route == nullptr ? "no component" : route->name, owner);
    }
    const std::string_view state = parts->state.substr(kStates.size() + owner.size() + 1);
    std::string renamed = std::string(state) + tensor;
    if (!seen_.insert(renamed).second) {
      return fail(Code::kDuplicateName, "tensor {}: found it under two names", name);
    }
    name = std::move(renamed);
    return {};
  }

  Result<std::string> standard(std::string_view name) {
    const std::string bare = without_wrappers(name);
    const std::string_view root = name.substr(0, root_length(name));
    const std::string_view wrapper = name.substr(root.size(), name.size() - bare.size());
    const auto [known, is_new] = wrappers_.emplace(root, wrapper);
    std::string renamed = standard_name(routes_, bare);
    if (renamed.empty()) {
      return fail(
          Code::kNoFamily,
          "tensor {}: found a component that no family has, expected one of {}; --map takes "
          "a family's file",
          name, known_paths(routes_));
    }
    if (is_new || known->second == wrapper) return renamed;
    if (seen_.contains(renamed)) return renamed;  // the caller says that it is there twice
    return fail(Code::kMetadataCorrupt,
                "tensor {}: found '{}' behind {}, expected '{}' as in the component's other names",
                name, wrapper, root, known->second);
  }

  std::vector<ComponentRoute> routes_;
  std::set<std::string, std::less<>> seen_;
  Wrappers wrappers_;
};

}  // namespace

bool is_mimo(const Catalog& catalog) {
  return std::ranges::any_of(catalog.tensors, [](const StoredTensor& tensor) {
    return tensor.desc.name.starts_with(kModalities);
  });
}

std::string_view component_of_tensor(std::string_view name) {
  const std::string_view root = name.substr(0, root_length(name));
  if (root.empty()) return {};
  if (root == kLanguage) return "language";
  return root.substr(kModalities.size(), root.size() - kModalities.size() - 1);
}

std::string without_wrappers(std::string_view name) {
  const std::size_t root = root_length(name);
  std::string_view rest = name.substr(root);
  if (root == 0) return std::string(name);
  while (rest.starts_with(kWrapper)) rest.remove_prefix(kWrapper.size());
  return std::string(name.substr(0, root)) + std::string(rest);
}

std::string with_wrappers(const Wrappers& wrappers, std::string_view name) {
  const std::string_view root = name.substr(0, root_length(name));
  const auto wrapper = wrappers.find(root);
  if (wrapper == wrappers.end()) return std::string(name);
  return std::string(root) + wrapper->second + std::string(name.substr(root.size()));
}

std::string_view component_of_state(std::string_view name) {
  if (!name.starts_with(kStates)) return {};
  name.remove_prefix(kStates.size());
  const std::size_t dot = name.find('.');
  return dot == std::string_view::npos ? std::string_view() : name.substr(0, dot);
}

Result<Wrappers> to_standard_names(std::span<const Mapping> mappings, Catalog& catalog) {
  Renaming renaming(mappings);
  for (StoredTensor& tensor : catalog.tensors) SW_TRY(renaming.rename(tensor.desc.name));
  for (StoredObject& object : catalog.objects) SW_TRY(renaming.rename(object.name));
  return std::move(renaming).take_wrappers();
}

Status check_mimo_optimizer(const ConvertRequest& request, const Catalog& source) {
  if (request.optimizer != OptimizerPolicy::kKeep) return {};
  const bool is_from_mimo = is_mimo(source);
  const bool is_to_mimo = request.format == TargetFormat::kMimo;
  if (is_from_mimo == is_to_mimo) return {};
  if (is_to_mimo) {
    return fail(Code::kOptimizerUnsupported,
                "--optimizer keep: found the parameter groups of one optimizer in {}, expected "
                "those of each component's, as MIMO has them; convert without optimizer states "
                "(--optimizer drop)",
                request.input);
  }
  const auto group = std::ranges::find_if(source.objects, [](const StoredObject& object) {
    return !component_of_state(object.name).empty();
  });
  const bool has_states = std::ranges::any_of(source.tensors, [](const StoredTensor& tensor) {
    return !component_of_state(tensor.desc.name).empty();
  });
  if (!has_states && group == source.objects.end()) return {};
  return fail(Code::kOptimizerUnsupported,
              "--optimizer keep: found {} in {}, expected one optimizer's parameter groups, as an "
              "ordinary model has them; convert to another MIMO layout, or without optimizer "
              "states (--optimizer drop)",
              group == source.objects.end() ? std::string("optimizer states of each component")
                                            : group->name,
              request.input);
}

}  // namespace shardwright

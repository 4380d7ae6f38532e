// SPDX-License-Identifier: Apache-2.0
#include "model/component_names.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "base/fail.h"
#include "layout/state_name.h"

namespace shardwright {
namespace {

constexpr std::string_view kModalities = kModalitySubmodules;
constexpr std::string_view kLanguage = "language_model.";

// The length of a component's root in a name: `language_model.` or `modality_submodules.images.`;
// 0 for names of other things.
std::size_t root_length(std::string_view name) {
  if (name.starts_with(kLanguage)) return kLanguage.size();
  if (!name.starts_with(kModalities)) return 0;
  const std::size_t dot = name.find('.', kModalities.size());
  return dot == std::string_view::npos ? 0 : dot + 1;
}

std::string known_paths(std::span<const Mapping> mappings) {
  std::set<std::string> paths;
  for (const Mapping& mapping : mappings) {
    for (const ComponentRoute& route : mapping.components) paths.insert(route.path);
  }
  return fmt::format("{}", fmt::join(paths, ", "));
}

// The names that belong to components, without wrappers.
std::vector<std::string> names_in_components(const Catalog& catalog) {
  std::vector<std::string> names;
  const auto add = [&](const std::string& name) {
    if (root_length(name) != 0) names.push_back(without_wrappers(name));
  };
  for (const StoredTensor& tensor : catalog.tensors) add(tensor.desc.name);
  for (const StoredObject& object : catalog.objects) add(object.name);
  return names;
}

// The first name that the family has no route for; null if it has one for each.
const std::string* first_without_route(const Mapping& mapping,
                                       const std::vector<std::string>& names) {
  const auto found = std::ranges::find_if(names, [&](const std::string& name) {
    return standard_name(mapping.components, name).empty();
  });
  return found == names.end() ? nullptr : &*found;
}

bool is_renamed_alike(const Mapping& a, const Mapping& b, const std::vector<std::string>& names) {
  return a.components == b.components || std::ranges::all_of(names, [&](const std::string& name) {
           return standard_name(a.components, name) == standard_name(b.components, name);
         });
}

std::unexpected<Error> no_routes(std::span<const Mapping> mappings, std::string_view family,
                                 std::string_view name) {
  const std::string known = known_paths(mappings);
  if (known.empty()) {
    return fail(Code::kNoFamily,
                "tensor {}: this is a component's, and family {} has none; it is of another model",
                name, mappings.empty() ? family : std::string_view(mappings.front().family));
  }
  return fail(Code::kNoFamily, "tensor {}: {}; known are {}; --map takes a family's file", name,
              family.empty() ? "no family has this component"
                             : translated("family {} has no such component", family),
              known);
}

class Renaming {
 public:
  explicit Renaming(std::span<const ComponentRoute> routes) : routes_(routes) {}

  Status rename(std::string& name) {
    const std::string_view owner = component_of_state(name);
    if (!owner.empty()) return rename_state(std::string(owner), name);
    if (root_length(name) == 0) return {};
    std::string renamed = SW_TRY(standard(name));
    if (!seen_.insert(renamed).second) {
      return fail(Code::kDuplicateName, "tensor {} is stored under two names, with and without {}",
                  name, kMimoWrapper);
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
    const std::string_view state = parts->prefix.substr(kMimoStates.size() + owner.size() + 1);
    std::string renamed = std::string(state) + tensor;
    if (!seen_.insert(renamed).second) {
      return fail(Code::kDuplicateName, "tensor {} is stored under two names", name);
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
      return fail(Code::kNoFamily, "tensor {}: found the state of a component that the model lacks",
                  name);
    }
    if (is_new || known->second == wrapper) return renamed;
    if (seen_.contains(renamed)) return renamed;  // the caller says that it is there twice
    return fail(Code::kMetadataCorrupt,
                "tensor {}: found '{}' behind {}, expected '{}' as in the component's other names",
                name, wrapper, root, known->second);
  }

  std::span<const ComponentRoute> routes_;
  std::set<std::string, std::less<>> seen_;
  Wrappers wrappers_;
};

}  // namespace

bool has_component_names(const Catalog& catalog) {
  return std::ranges::any_of(catalog.tensors, [](const StoredTensor& tensor) {
    return tensor.desc.name.starts_with(kModalitySubmodules);
  });
}

std::string_view component_of_state(std::string_view name) {
  if (!name.starts_with(kMimoStates)) return {};
  name.remove_prefix(kMimoStates.size());
  const std::size_t dot = name.find('.');
  return dot == std::string_view::npos ? std::string_view() : name.substr(0, dot);
}

std::string_view component_of_tensor(std::string_view name) {
  const std::string_view root = name.substr(0, root_length(name));
  if (root.empty()) return {};
  if (root == kLanguage) return "language";
  return root.substr(kModalities.size(), root.size() - kModalities.size() - 1);
}

std::string_view root_of_component(std::string_view name) {
  return name.substr(0, root_length(name));
}

std::string without_wrappers(std::string_view name) {
  const std::size_t root = root_length(name);
  std::string_view rest = name.substr(root);
  if (root == 0) return std::string(name);
  while (rest.starts_with(kMimoWrapper)) rest.remove_prefix(kMimoWrapper.size());
  return std::string(name.substr(0, root)) + std::string(rest);
}

std::string with_wrappers(const Wrappers& wrappers, std::string_view name) {
  const std::string_view root = name.substr(0, root_length(name));
  const auto wrapper = wrappers.find(root);
  if (wrapper == wrappers.end()) return std::string(name);
  return std::string(root) + wrapper->second + std::string(name.substr(root.size()));
}

// Families may give one path to different parts (their projections lie in the same place), so the
// routes are those of one family that has all of the components.
Result<std::vector<const Mapping*>> families_with_routes(std::span<const Mapping> mappings,
                                                         std::string_view family,
                                                         const Catalog& catalog) {
  const std::vector<std::string> names = names_in_components(catalog);
  std::vector<const Mapping*> fitting;
  if (names.empty()) return fitting;
  std::size_t longest = 0;  // how many names the nearest family has routes for, up to the first
  const std::string* missing = nullptr;
  for (const Mapping& mapping : mappings) {
    if (mapping.components.empty() || (!family.empty() && mapping.family != family)) continue;
    if (const std::string* name = first_without_route(mapping, names); name != nullptr) {
      const auto before = static_cast<std::size_t>(name - names.data());
      if (missing == nullptr || before > longest) missing = name;
      longest = std::max(longest, before);
      continue;
    }
    const auto is_alike = [&](const Mapping* other) {
      return is_renamed_alike(*other, mapping, names);
    };
    if (std::ranges::none_of(fitting, is_alike)) fitting.push_back(&mapping);
  }
  if (!fitting.empty()) return fitting;
  return no_routes(mappings, family, missing == nullptr ? names.front() : *missing);
}

Result<Wrappers> to_standard_names(std::span<const ComponentRoute> routes, Catalog& catalog) {
  Renaming renaming(routes);
  for (StoredTensor& tensor : catalog.tensors) SW_TRY(renaming.rename(tensor.desc.name));
  for (StoredObject& object : catalog.objects) SW_TRY(renaming.rename(object.name));
  return std::move(renaming).take_wrappers();
}

}  // namespace shardwright

// SPDX-License-Identifier: Apache-2.0
#include "convert/mimo_source.h"

#include <algorithm>
#include <set>

#include "base/fail.h"

namespace shardwright {
namespace {

constexpr std::string_view kModalities = "modality_submodules.";
constexpr std::string_view kLanguage = "language_model.";
constexpr std::string_view kWrapper = "module.";

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
    if (root_length(name) == 0) return {};
    std::string renamed = standard_name(routes_, without_wrappers(name));
    if (renamed.empty()) {
      return fail(
          Code::kNoFamily,
          "tensor {}: found a component that no family has, expected one of {}; --map takes "
          "a family's file",
          name, known_paths(routes_));
    }
    if (!seen_.insert(renamed).second) {
      return fail(Code::kDuplicateName, "tensor {}: found it under two names, with and without {}",
                  name, kWrapper);
    }
    name = std::move(renamed);
    return {};
  }

 private:
  std::vector<ComponentRoute> routes_;
  std::set<std::string, std::less<>> seen_;
};

}  // namespace

bool is_mimo(const Catalog& catalog) {
  return std::ranges::any_of(catalog.tensors, [](const StoredTensor& tensor) {
    return tensor.desc.name.starts_with(kModalities);
  });
}

std::string without_wrappers(std::string_view name) {
  const std::size_t root = root_length(name);
  std::string_view rest = name.substr(root);
  if (root == 0) return std::string(name);
  while (rest.starts_with(kWrapper)) rest.remove_prefix(kWrapper.size());
  return std::string(name.substr(0, root)) + std::string(rest);
}

Status to_standard_names(std::span<const Mapping> mappings, Catalog& catalog) {
  Renaming renaming(mappings);
  for (StoredTensor& tensor : catalog.tensors) SW_TRY(renaming.rename(tensor.desc.name));
  for (StoredObject& object : catalog.objects) SW_TRY(renaming.rename(object.name));
  return {};
}

}  // namespace shardwright

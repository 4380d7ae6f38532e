// SPDX-License-Identifier: Apache-2.0
#include "model/component_route.h"

#include <algorithm>

#include "base/fail.h"

namespace shardwright {
namespace {

Status check_text(const ComponentRoute& route, std::string_view text) {
  if (text.size() > 1 && text.ends_with('.') && !text.starts_with('.')) return {};
  return fail(Code::kMappingInvalid,
              "component {}: found the route '{}', expected words that each end with a dot",
              route.name, text);
}

// Neither lies inside the other.
bool are_disjoint(std::string_view a, std::string_view b) {
  return !a.starts_with(b) && !b.starts_with(a);
}

}  // namespace

Status check_routes(std::span<const ComponentRoute> routes) {
  for (std::size_t i = 0; i < routes.size(); ++i) {
    SW_TRY(check_text(routes[i], routes[i].prefix));
    SW_TRY(check_text(routes[i], routes[i].path));
    for (std::size_t j = 0; j < i; ++j) {
      if (are_disjoint(routes[i].prefix, routes[j].prefix) &&
          are_disjoint(routes[i].path, routes[j].path)) {
        continue;
      }
      return fail(Code::kMappingInvalid,
                  "components {} and {}: found one's route inside the other's, expected tensors of "
                  "their own for each",
                  routes[j].name, routes[i].name);
    }
  }
  if (std::ranges::find(routes, "language", &ComponentRoute::name) == routes.end()) {
    return fail(Code::kMappingInvalid,
                "components: none of them is 'language', which every model has");
  }
  return {};
}

const ComponentRoute* route_of(std::span<const ComponentRoute> routes, std::string_view name) {
  const auto found = std::ranges::find_if(
      routes, [&](const ComponentRoute& route) { return name.starts_with(route.prefix); });
  return found == routes.end() ? nullptr : &*found;
}

std::string mimo_name(std::span<const ComponentRoute> routes, std::string_view name) {
  const ComponentRoute* route = route_of(routes, name);
  return route->path + std::string(name.substr(route->prefix.size()));
}

std::string standard_name(std::span<const ComponentRoute> routes, std::string_view name) {
  const auto found = std::ranges::find_if(
      routes, [&](const ComponentRoute& route) { return name.starts_with(route.path); });
  if (found == routes.end()) return {};
  return found->prefix + std::string(name.substr(found->path.size()));
}

}  // namespace shardwright

// SPDX-License-Identifier: Apache-2.0
#include "model/mapping_parse.h"

namespace shardwright {

Result<std::vector<ComponentRoute>> parse_routes(const JsonNode& node) {
  std::vector<ComponentRoute> routes;
  for (const auto& [name, route] : SW_TRY(node.members())) {
    SW_TRY(route.only({"megatron", "mimo"}));
    const JsonNode prefix = SW_TRY(route.at("megatron"));
    const JsonNode path = SW_TRY(route.at("mimo"));
    routes.push_back({name, SW_TRY(prefix.text()), SW_TRY(path.text())});
  }
  if (Status status = check_routes(routes); !status) return refused(node, status.error());
  return routes;
}

}  // namespace shardwright

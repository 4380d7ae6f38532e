// SPDX-License-Identifier: Apache-2.0
#include "model/mapping_parse.h"

namespace shardwright {

namespace {

Result<ComponentRoute> parse_route(const std::string& name, const JsonNode& node) {
  SW_TRY(node.only({"megatron", "mimo"}));
  const JsonNode prefix = SW_TRY(node.at("megatron"));
  const JsonNode path = SW_TRY(node.at("mimo"));
  return ComponentRoute{name, SW_TRY(prefix.text()), SW_TRY(path.text())};
}

}  // namespace

// An encoder and the projection behind it may lie in two places: then a component has two routes.
Result<std::vector<ComponentRoute>> parse_routes(const JsonNode& node) {
  std::vector<ComponentRoute> routes;
  for (const auto& [name, member] : SW_TRY(node.members())) {
    std::vector<JsonNode> nodes = {member};
    if (member.is_array()) nodes = SW_TRY(member.elements());
    for (const JsonNode& each : nodes) routes.push_back(SW_TRY(parse_route(name, each)));
  }
  if (Status status = check_routes(routes); !status) return refused(node, status.error());
  return routes;
}

}  // namespace shardwright

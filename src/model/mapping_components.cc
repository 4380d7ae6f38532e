// SPDX-License-Identifier: Apache-2.0
#include <set>

#include "model/mapping_parse.h"

namespace shardwright {

namespace {

// What `components` says of one member, each of its nodes in turn.
class ComponentParser {
 public:
  explicit ComponentParser(const KnownNames& known) : known_(known) {}

  Status parse(const std::string& name, const JsonNode& node) {
    SW_TRY(node.only({"megatron", "mimo", "hf", "config", "width"}));
    const std::optional<JsonNode> prefixes = node.find("hf");
    if (node.find("megatron") || node.find("mimo") || !prefixes) {
      const JsonNode prefix = SW_TRY(node.at("megatron"));
      const JsonNode path = SW_TRY(node.at("mimo"));
      result_.routes.push_back({name, SW_TRY(prefix.text()), SW_TRY(path.text())});
    }
    if (prefixes) return parse_part(name, node, *prefixes);
    for (const char* key : {"config", "width"}) {
      if (const auto member = node.find(key)) return member->invalid("no 'hf' beside it", "one");
    }
    return {};
  }

  [[nodiscard]] Components take() && { return std::move(result_); }

 private:
  Status parse_part(const std::string& name, const JsonNode& node, const JsonNode& prefixes) {
    if (!names_.insert(name).second) return prefixes.invalid("a second 'hf'", "one of a component");
    ModelPart part{name, {}, {}, {}};
    for (const auto& [whole, alone] : SW_TRY(prefixes.members())) {
      part.prefixes.push_back({whole, SW_TRY(alone.text())});
    }
    if (const auto config = node.find("config")) part.config = SW_TRY(config->text());
    if (const auto width = node.find("width")) {
      part.width = SW_TRY(width->text());
      if (!known_.sizes.contains(part.width)) {
        return width->invalid("'" + part.width + "'", "the name of a size");
      }
    }
    result_.parts.push_back(std::move(part));
    return {};
  }

  const KnownNames& known_;
  Components result_;
  std::set<std::string, std::less<>> names_;
};

}  // namespace

// An encoder and the projection behind it may lie in two places: then a component has two routes.
Result<Components> parse_components(const JsonNode& node, const KnownNames& known) {
  ComponentParser parser(known);
  for (const auto& [name, member] : SW_TRY(node.members())) {
    std::vector<JsonNode> nodes = {member};
    if (member.is_array()) nodes = SW_TRY(member.elements());
    for (const JsonNode& each : nodes) SW_TRY(parser.parse(name, each));
  }
  Components components = std::move(parser).take();
  if (Status status = check_routes(components.routes); !status) {
    return refused(node, status.error());
  }
  if (Status status = check_parts(components.parts); !status) return refused(node, status.error());
  return components;
}

}  // namespace shardwright

// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
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

Result<HeldTensor> parse_held_tensor(const JsonNode& node) {
  HeldTensor held{SW_TRY(node.texts())};
  const bool are_names = std::ranges::none_of(held.names, [](const std::string& name) {
    return name.empty() || name.starts_with('.') || name.ends_with('.');
  });
  if (held.names.empty() || !are_names) {
    return node.invalid("no name", "a tensor's, as it is behind the part's prefix");
  }
  return held;
}

// What a file inherits may be of parts that it has not.
Status add_held(const JsonNode& holds, std::vector<AlikePart>& parts) {
  for (const auto& [prefix, node] : SW_TRY(holds.members())) {
    std::vector<HeldTensor> held;
    for (const JsonNode& each : SW_TRY(node.elements())) {
      held.push_back(SW_TRY(parse_held_tensor(each)));
    }
    const auto part = std::ranges::find(parts, prefix, &AlikePart::megatron);
    if (part != parts.end()) part->holds = std::move(held);
  }
  return {};
}

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

Result<std::vector<NeededArg>> parse_needed_args(const JsonNode& root) {
  std::vector<NeededArg> needed;
  const std::optional<JsonNode> node = root.find("needs_args");
  if (node && node->is_object()) {
    const auto members = SW_TRY(node->members());
    for (const auto& [name, value] : members) {
      needed.push_back(NeededArg{name, SW_TRY(parse_value(value))});
    }
    return needed;
  }
  const std::vector<std::string> names = SW_TRY(texts_or_none(root, "needs_args"));
  for (const std::string& name : names) needed.push_back(NeededArg{name, std::nullopt});
  return needed;
}

Result<std::vector<NeededConfig>> parse_needed_config(const JsonNode& root) {
  std::vector<NeededConfig> needed;
  const std::optional<JsonNode> node = root.find("needs_config");
  if (!node) return needed;
  const auto members = SW_TRY(node->members());
  for (const auto& [key, list] : members) {
    NeededConfig& entry = needed.emplace_back(NeededConfig{key, {}});
    if (list.is_text()) {
      const std::string word = SW_TRY(list.text());
      if (word != "set") return list.invalid(fmt::format("'{}'", word), "'set' or a list");
      continue;
    }
    const std::vector<JsonNode> values = SW_TRY(list.elements());
    for (const JsonNode& value : values) entry.values.push_back(SW_TRY(parse_value(value)));
    if (values.empty()) return list.invalid("no values", "one or more");
  }
  return needed;
}

Result<std::vector<AlikePart>> parse_alike(const JsonNode& root) {
  std::vector<AlikePart> parts;
  std::vector<JsonNode> nodes;
  if (const std::optional<JsonNode> list = root.find("alike")) nodes = SW_TRY(list->elements());
  for (const JsonNode& node : nodes) {
    SW_TRY(node.only({"megatron", "hf", "optional"}));
    AlikePart& part = parts.emplace_back();
    const JsonNode megatron = SW_TRY(node.at("megatron"));
    part.megatron = SW_TRY(megatron.text());
    part.hf = SW_TRY(texts_or_none(node, "hf"));
    part.optional = SW_TRY(flag_or(node, "optional", false));
    const auto ends = [](const std::string& prefix) { return prefix.ends_with('.'); };
    if (part.hf.empty() || !ends(part.megatron) || !std::ranges::all_of(part.hf, ends)) {
      return node.invalid("no prefixes", "'megatron' and 'hf' with a dot at their ends");
    }
  }
  if (const std::optional<JsonNode> holds = root.find("holds")) {
    SW_TRY(add_held(*holds, parts));
  }
  return parts;
}

Status check_held(const JsonNode& root, const std::vector<AlikePart>& parts) {
  const std::optional<JsonNode> holds = root.find("holds");
  if (!holds) return {};
  for (const auto& [prefix, node] : SW_TRY(holds->members())) {
    if (node.is_null()) continue;
    if (std::ranges::find(parts, prefix, &AlikePart::megatron) == parts.end()) {
      return node.invalid("'" + prefix + "'", "the 'megatron' of a part in 'alike'");
    }
  }
  return {};
}

}  // namespace shardwright

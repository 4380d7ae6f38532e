// SPDX-License-Identifier: Apache-2.0
#include "model/own_names.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/fail.h"
#include "codec/json_text.h"
#include "model/built_in_models.h"
#include "model/json_node.h"

namespace shardwright {
namespace {

// Where a set of rules applies: what stands before the names of both sides.
struct Place {
  std::string stored;
  std::string megatron;
};

Result<NumberedName> own_name_of(const JsonNode& node, const std::string& text) {
  Result<NumberedName> name = NumberedName::parse(text);
  if (!name) return node.invalid("'" + text + "'", "braces at the end of a part between dots");
  return name;
}

Result<OwnNameRule> read_own_rule(const JsonNode& node, const Place& place) {
  SW_TRY(node.only({"stored", "megatron", "extents", "stack", "rows"}));
  OwnNameRule rule;
  const JsonNode stored = SW_TRY(node.at("stored"));
  for (const std::string& text : SW_TRY(stored.texts())) {
    NumberedName name = SW_TRY(own_name_of(stored, place.stored + text));
    rule.stored.push_back(std::move(name));
  }
  const JsonNode megatron = SW_TRY(node.at("megatron"));
  for (const std::string& text : SW_TRY(megatron.texts())) {
    rule.megatron.push_back(SW_TRY(NameTemplate::parse(place.megatron + text)));
  }
  if (const auto found = node.find("extents")) {
    for (const std::string& text : SW_TRY(found->texts())) {
      rule.extents.push_back(SW_TRY(SizeExpr::parse(text)));
    }
    if (rule.extents.size() != rule.megatron.size()) {
      return found->invalid(std::to_string(rule.extents.size()), "one for each Megatron name");
    }
  }
  if (const auto found = node.find("stack")) {
    rule.stack = SW_TRY(found->text());
    if (rule.megatron.size() != 1) return found->invalid("several names", "one to stack");
  }
  if (const auto found = node.find("rows")) {
    const std::string rows = SW_TRY(found->text());
    if (rows != "rank_parts") return found->invalid("'" + rows + "'", "'rank_parts'");
    rule.has_rank_parts = true;
  }
  return rule;
}

Status read_own_rules(const JsonNode& list, const Place& place, std::vector<OwnNameRule>& rules) {
  for (const JsonNode& node : SW_TRY(list.elements())) {
    rules.push_back(SW_TRY(read_own_rule(node, place)));
  }
  return {};
}

Result<std::string> text_at(const JsonNode& node, std::string_view key) {
  const JsonNode value = SW_TRY(node.at(key));
  return value.text();
}

}  // namespace

std::optional<std::vector<Binding>> OwnNameRule::match(std::string_view name) const {
  for (const NumberedName& each : stored) {
    if (auto numbers = each.match(name)) return numbers;
  }
  return std::nullopt;
}

const OwnNameRule* OwnNames::find(std::string_view name) const {
  const auto found = std::ranges::find_if(
      rules, [&](const OwnNameRule& rule) { return rule.match(name).has_value(); });
  return found == rules.end() ? nullptr : &*found;
}

bool OwnNames::ignores(std::string_view name) const {
  return std::ranges::any_of(
      ignore, [&](const NumberedName& each) { return each.match(name).has_value(); });
}

Result<OwnNames> parse_own_names(std::string_view json, std::string_view file_name) {
  const Json document = SW_TRY(parse_ordered_json(json, file_name));
  const JsonNode root(document, std::string(file_name) + "#");
  SW_TRY(root.only(
      {"about", "names", "families", "layers", "of_layer", "rules", "buffers", "ignore"}));
  OwnNames own;
  own.names = SW_TRY(text_at(root, "names"));
  const JsonNode families = SW_TRY(root.at("families"));
  own.families = SW_TRY(families.texts());
  const JsonNode layers = SW_TRY(root.at("layers"));
  const JsonNode of_layer = SW_TRY(root.at("of_layer"));
  for (const JsonNode& node : SW_TRY(layers.elements())) {
    SW_TRY(node.only({"stored", "megatron"}));
    const Place place{SW_TRY(text_at(node, "stored")), SW_TRY(text_at(node, "megatron"))};
    SW_TRY(read_own_rules(of_layer, place, own.rules));
  }
  const JsonNode rules = SW_TRY(root.at("rules"));
  SW_TRY(read_own_rules(rules, {}, own.rules));
  if (const auto found = root.find("buffers")) {
    for (const JsonNode& node : SW_TRY(found->elements())) {
      SW_TRY(node.only({"hf", "megatron"}));
      const std::string hf = SW_TRY(text_at(node, "hf"));
      const std::string megatron = SW_TRY(text_at(node, "megatron"));
      own.buffers.push_back({SW_TRY(own_name_of(node, hf)), SW_TRY(NameTemplate::parse(megatron))});
    }
  }
  if (const auto found = root.find("ignore")) {
    for (const std::string& text : SW_TRY(found->texts())) {
      own.ignore.push_back(SW_TRY(own_name_of(*found, text)));
    }
  }
  return own;
}

Result<std::vector<OwnNames>> built_in_mlite_names() {
  std::vector<OwnNames> all;
  for (const MappingText& text : built_in_mlite()) {
    all.push_back(SW_TRY(parse_own_names(text.json, text.name)));
  }
  return all;
}

}  // namespace shardwright

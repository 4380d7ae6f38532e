// SPDX-License-Identifier: Apache-2.0
#include "model/placement_file.h"

#include <nlohmann/json.hpp>

#include "codec/json_text.h"
#include "model/json_node.h"

namespace shardwright {
namespace {

Status read_texts(const JsonNode& node, std::string_view key, std::vector<std::string>& texts) {
  if (const auto found = node.find(key)) texts = SW_TRY(found->texts());
  return {};
}

Result<NamePattern> read_pattern(const JsonNode& node) {
  NamePattern pattern;
  SW_TRY(read_texts(node, "contains", pattern.contains));
  SW_TRY(read_texts(node, "any_of", pattern.any_of));
  SW_TRY(read_texts(node, "without", pattern.without));
  if (const auto found = node.find("starts_with")) pattern.starts_with = SW_TRY(found->text());
  return pattern;
}

// A tensor axis, or -1 where the mesh axis is not named.
Result<int> read_axis(const JsonNode& shard, std::string_view key) {
  const auto found = shard.find(key);
  if (!found) return -1;
  const std::int64_t axis = SW_TRY(found->integer());
  if (axis < 0 || axis >= kMaxAxes) return found->invalid(std::to_string(axis), "a tensor axis");
  return static_cast<int>(axis);
}

Result<PlacementRule> read_rule(const JsonNode& node) {
  SW_TRY(node.only({"contains", "any_of", "without", "starts_with", "experts", "shard"}));
  PlacementRule rule;
  rule.pattern = SW_TRY(read_pattern(node));
  if (const auto found = node.find("experts")) rule.expert = SW_TRY(found->boolean());
  const auto shard = node.find("shard");
  if (!shard) return rule;
  if (rule.expert) {
    SW_TRY(shard->only({"ep", "etp"}));
  } else {
    SW_TRY(shard->only({"tp"}));
  }
  rule.tensor_axis = SW_TRY(read_axis(*shard, "tp"));
  rule.expert_axis = SW_TRY(read_axis(*shard, "ep"));
  rule.expert_tensor_axis = SW_TRY(read_axis(*shard, "etp"));
  return rule;
}

}  // namespace

Result<PlacementRules> parse_placement_rules(std::string_view json, std::string_view file_name) {
  const Json document = SW_TRY(parse_ordered_json(json, file_name));
  const JsonNode root(document, std::string(file_name) + "#");
  SW_TRY(root.only({"family", "experts", "rules"}));
  PlacementRules rules;
  const JsonNode family = SW_TRY(root.at("family"));
  rules.family = SW_TRY(family.text());
  const JsonNode experts = SW_TRY(root.at("experts"));
  SW_TRY(experts.only({"contains", "any_of", "without", "starts_with"}));
  rules.experts = SW_TRY(read_pattern(experts));
  const JsonNode list = SW_TRY(root.at("rules"));
  for (const JsonNode& node : SW_TRY(list.elements())) {
    rules.rules.push_back(SW_TRY(read_rule(node)));
  }
  return rules;
}

}  // namespace shardwright

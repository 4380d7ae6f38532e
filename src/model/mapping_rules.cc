// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/translated.h"
#include "model/mapping_parse.h"

namespace shardwright {
namespace {

/// The names of one side of a rule: one, a list, or by role in the order that the transform wants.
Result<std::vector<NameTemplate>> parse_names(const JsonNode& node, const std::string& prefix,
                                              const std::vector<std::string>& roles) {
  std::vector<JsonNode> nodes;
  if (node.is_array()) {
    nodes = SW_TRY(node.elements());
  } else if (roles.empty()) {
    nodes.push_back(node);
  } else {
    for (const std::string& role : roles) nodes.push_back(SW_TRY(node.at(role)));
  }
  std::vector<NameTemplate> names;
  for (const JsonNode& each : nodes) {
    const std::string text = SW_TRY(each.text());
    Result<NameTemplate> name = NameTemplate::parse(prefix + text);
    if (!name) return refused(each, std::move(name).error());
    names.push_back(*std::move(name));
  }
  return names;
}

Result<Dims> parse_permute(const JsonNode& node) {
  Dims permute;
  const std::optional<JsonNode> list = node.find("permute");
  if (!list) return permute;
  const std::vector<JsonNode> elements = SW_TRY(list->elements());
  std::set<std::int64_t> seen;
  for (const JsonNode& element : elements) {
    const std::int64_t axis = SW_TRY(element.integer());
    const bool in_range = axis >= 0 && axis < std::ssize(elements) && axis < kMaxAxes;
    if (!in_range || !seen.insert(axis).second) {
      return element.invalid(fmt::format("axis {}", axis), "every axis once");
    }
    permute.push_back(axis);
  }
  return permute;
}

/// Names in braces must be sizes or bound loop variables; the HF names may share one more loop
/// variable, the one that Megatron stacks along a leading axis.
Status bind_names(Rule& rule, const JsonNode& node, const RulePrefix& prefix,
                  const KnownNames& known) {
  const auto is_bound = [&](const std::string& name) {
    return known.sizes.contains(name) ||
           std::ranges::find(prefix.loops, name) != prefix.loops.end();
  };
  for (const std::vector<NameTemplate>* names : {&rule.megatron, &rule.aliases, &rule.hf}) {
    for (const NameTemplate& tmpl : *names) {
      for (const std::string& name : tmpl.names()) {
        if (is_bound(name) || name == rule.stack) continue;
        if (names != &rule.hf || !known.indices.contains(name) || !rule.stack.empty()) {
          return node.invalid(fmt::format("'{{{}}}' in '{}'", name, tmpl.text()),
                              "a size or a loop variable that is bound there");
        }
        rule.stack = name;
      }
    }
  }
  for (const NameTemplate& tmpl : rule.hf) {
    if (!rule.stack.empty() && !tmpl.uses(rule.stack)) {
      return node.invalid(fmt::format("'{}' without '{{{}}}'", tmpl.text(), rule.stack),
                          "every HF name of the rule to have it");
    }
  }
  return {};
}

Status check_combination(const Rule& rule, const JsonNode& node) {
  const bool is_whole = std::holds_alternative<Rename>(rule.transform) ||
                        std::holds_alternative<Repeat>(rule.transform);
  const bool is_plain = is_whole && rule.permute.empty() && rule.stack.empty();
  if (rule.vocabulary && !is_plain) {
    return node.invalid("'vocabulary' on a transformed tensor", "it on a plain rename or repeat");
  }
  if (!rule.stack.empty() && rule.megatron.size() != 1) {
    return node.invalid(translated("'{{{}}}' with several Megatron names", rule.stack), "one name");
  }
  if (!rule.aliases.empty() && rule.megatron.size() != 1) {
    return node.invalid("'aliases' with several Megatron names", "one name");
  }
  if (rule.offset != 0.0 && rule.hf.empty()) return node.invalid("'add' on a constant", "'value'");
  return {};
}

Status parse_traits(Rule& rule, const JsonNode& node, const RulePrefix& prefix,
                    const KnownNames& known) {
  rule.optional = SW_TRY(flag_or(node, "optional", false));
  rule.expected = SW_TRY(flag_or(node, "expected", false));
  rule.vocabulary = SW_TRY(flag_or(node, "vocabulary", false));
  rule.condition = SW_TRY(parse_condition(node, known));
  if (const std::optional<JsonNode> dtype = node.find("dtype")) {
    const std::string name = SW_TRY(dtype->text());
    rule.dtype = dtype_from_torch(name);
    if (!rule.dtype) return dtype->invalid(fmt::format("'{}'", name), "torch's name of a dtype");
  }
  if (const std::optional<JsonNode> add = node.find("add")) rule.offset = SW_TRY(add->number());
  if (const std::optional<JsonNode> shape = node.find("shape")) {
    const std::vector<JsonNode> extents = SW_TRY(shape->elements());
    for (const JsonNode& extent : extents) {
      rule.shape.push_back(SW_TRY(parse_expr(extent, known, prefix.loops)));
    }
    if (extents.empty() || std::ssize(extents) >= kMaxAxes) {
      return shape->invalid(fmt::format("{} extents", extents.size()),
                            fmt::format("1 to {}", kMaxAxes - 1));
    }
  }
  if (const std::optional<JsonNode> aliases = node.find("aliases")) {
    const std::vector<JsonNode> nodes = SW_TRY(aliases->elements());
    for (const JsonNode& each : nodes) {
      std::vector<NameTemplate> names = SW_TRY(parse_names(each, prefix.megatron, {}));
      rule.aliases.push_back(std::move(names.front()));
    }
  }
  return {};
}

}  // namespace

Result<Rule> parse_rule(const JsonNode& node, const RulePrefix& prefix, const KnownNames& known) {
  SW_TRY(node.only({"megatron", "hf",       "transform", "aliases", "optional", "vocabulary",
                    "dtype",    "add",      "permute",   "shape",   "if",       "unless",
                    "axis",     "extents",  "heads",     "groups",  "head_dim", "output_gate",
                    "count",    "side",     "parts",     "ways",    "value",    "absent",
                    "unused",   "observed", "expected"}));
  Rule rule;
  rule.path = node.path();
  const JsonNode megatron = SW_TRY(node.at("megatron"));
  ParsedTransform parsed = SW_TRY(parse_transform(node, known, prefix.loops));
  rule.transform = std::move(parsed.transform);
  rule.megatron = SW_TRY(parse_names(megatron, prefix.megatron, parsed.megatron_roles));
  if (const std::optional<JsonNode> hf = node.find("hf")) {
    rule.hf = SW_TRY(parse_names(*hf, prefix.hf, parsed.hf_roles));
  }
  rule.permute = SW_TRY(parse_permute(node));
  SW_TRY(parse_traits(rule, node, prefix, known));
  SW_TRY(bind_names(rule, node, prefix, known));
  SW_TRY(check_combination(rule, node));
  return rule;
}

}  // namespace shardwright

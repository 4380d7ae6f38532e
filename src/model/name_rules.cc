// SPDX-License-Identifier: Apache-2.0
#include "model/name_rules.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "base/fail.h"
#include "codec/json_text.h"
#include "model/built_in_models.h"
#include "model/json_node.h"
#include "shardwright/tensor.h"

namespace shardwright {
namespace {

// The next part of a name, up to a dot, which is taken off.
std::string_view next_part(std::string_view& rest) {
  const std::size_t dot = rest.find('.');
  const std::string_view part = rest.substr(0, dot);
  rest = dot == std::string_view::npos ? std::string_view() : rest.substr(dot + 1);
  return part;
}

// A number as names spell it: without a sign or leading zeros.
std::optional<std::int64_t> number_in(std::string_view part) {
  if (part.empty() || (part.size() > 1 && part.front() == '0')) return std::nullopt;
  if (part.front() < '0' || part.front() > '9') return std::nullopt;
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), number);
  if (error != std::errc() || end != part.data() + part.size()) return std::nullopt;
  return number;
}

Result<std::vector<NumberedName>> read_names(const JsonNode& node) {
  std::vector<NumberedName> names;
  for (const std::string& text : SW_TRY(node.texts())) {
    Result<NumberedName> name = NumberedName::parse(text);
    if (!name)
      return node.invalid("'" + text + "'", "braces around a part between dots, or at its end");
    names.push_back(*std::move(name));
  }
  return names;
}

Status read_cuts(const JsonNode& node, std::vector<int>& cuts) {
  std::vector<JsonNode> axes;
  if (node.is_array()) {
    axes = SW_TRY(node.elements());
  } else {
    axes.push_back(node);
  }
  for (const JsonNode& each : axes) {
    const std::int64_t axis = SW_TRY(each.integer());
    if (axis < 0 || axis >= kMaxAxes) return each.invalid(std::to_string(axis), "a tensor axis");
    cuts.push_back(static_cast<int>(axis));
  }
  return {};
}

Result<StoredNameRule> read_name_rule(const JsonNode& node) {
  SW_TRY(node.only({"stored", "hf", "stack", "order", "cut"}));
  StoredNameRule rule;
  const JsonNode stored = SW_TRY(node.at("stored"));
  rule.stored = SW_TRY(read_names(stored));
  const JsonNode hf = SW_TRY(node.at("hf"));
  const std::string text = SW_TRY(hf.text());
  rule.hf = SW_TRY(NameTemplate::parse(text));
  if (const auto found = node.find("stack")) {
    rule.stack = SW_TRY(found->text());
    if (!rule.hf.uses(rule.stack)) return found->invalid(rule.stack, "a variable of the hf name");
  }
  if (const auto found = node.find("order")) {
    const std::string order = SW_TRY(found->text());
    if (order != "rotary_pairs") return found->invalid("'" + order + "'", "'rotary_pairs'");
    rule.has_rotary_pairs = true;
  }
  if (const auto found = node.find("cut")) SW_TRY(read_cuts(*found, rule.cuts));
  return rule;
}

}  // namespace

Result<NumberedName> NumberedName::parse(std::string_view text) {
  NumberedName name;
  name.text_ = text;
  for (std::string_view rest = text; !rest.empty();) {
    const std::string_view part = next_part(rest);
    const std::size_t brace = std::min(part.find_first_of("{}"), part.size());
    const std::string_view braced = part.substr(brace);
    const bool is_sound = braced.empty() || (braced.size() > 2 && braced.front() == '{' &&
                                             braced.find_first_of("{}", 1) == braced.size() - 1);
    if (part.empty() || !is_sound) {
      return fail(Code::kMappingInvalid,
                  "name '{}': braces stand for a part between dots, or for its end", text);
    }
    const std::string_view number = braced.empty() ? braced : braced.substr(1, braced.size() - 2);
    name.parts_.push_back({std::string(part.substr(0, brace)), std::string(number)});
  }
  return name;
}

std::optional<std::vector<Binding>> NumberedName::match(std::string_view name) const {
  std::vector<Binding> numbers;
  std::string_view rest = name;
  for (const Part& expected : parts_) {
    if (rest.empty()) return std::nullopt;
    const std::string_view part = next_part(rest);
    if (expected.number.empty()) {
      if (part != expected.text) return std::nullopt;
      continue;
    }
    if (!part.starts_with(expected.text)) return std::nullopt;
    const std::optional<std::int64_t> number = number_in(part.substr(expected.text.size()));
    if (!number) return std::nullopt;
    numbers.push_back({expected.number, *number});
  }
  if (!rest.empty() || name.ends_with('.')) return std::nullopt;
  return numbers;
}

std::optional<std::vector<Binding>> StoredNameRule::match(std::string_view name) const {
  for (const NumberedName& each : stored) {
    if (auto numbers = each.match(name)) return numbers;
  }
  return std::nullopt;
}

bool NameRules::ignores(std::string_view name) const {
  return std::ranges::any_of(
      ignore, [&](const NumberedName& each) { return each.match(name).has_value(); });
}

Result<NameRules> parse_name_rules(std::string_view json, std::string_view file_name) {
  const Json document = SW_TRY(parse_ordered_json(json, file_name));
  const JsonNode root(document, std::string(file_name) + "#");
  SW_TRY(root.only({"about", "names", "writers", "families", "rules", "ignore"}));
  NameRules rules;
  const JsonNode names = SW_TRY(root.at("names"));
  rules.names = SW_TRY(names.text());
  const JsonNode writers = SW_TRY(root.at("writers"));
  rules.writers = SW_TRY(writers.text());
  const JsonNode families = SW_TRY(root.at("families"));
  rules.families = SW_TRY(families.texts());
  const JsonNode list = SW_TRY(root.at("rules"));
  for (const JsonNode& node : SW_TRY(list.elements())) {
    rules.rules.push_back(SW_TRY(read_name_rule(node)));
  }
  if (const auto found = root.find("ignore")) rules.ignore = SW_TRY(read_names(*found));
  return rules;
}

Result<std::vector<NameRules>> built_in_name_rules() {
  std::vector<NameRules> rules;
  for (const MappingText& text : built_in_names()) {
    rules.push_back(SW_TRY(parse_name_rules(text.json, text.name)));
  }
  return rules;
}

}  // namespace shardwright

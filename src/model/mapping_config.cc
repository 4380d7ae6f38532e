// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/translated.h"
#include "model/mapping_parse.h"

namespace shardwright {

std::unexpected<Error> refused(const JsonNode& node, Error error) {
  return std::unexpected(std::move(error).within(node.path()));
}

Result<ArgValue> parse_value(const JsonNode& node) {
  const Json& value = node.value();
  if (value.is_null()) return ArgValue{};
  if (value.is_boolean()) return ArgValue{value.get<bool>()};
  if (value.is_number_integer()) return ArgValue{SW_TRY(node.integer())};
  if (value.is_number_float()) return ArgValue{value.get<double>()};
  if (value.is_string()) return ArgValue{value.get<std::string>()};
  std::vector<std::int64_t> list;
  const std::vector<JsonNode> elements = SW_TRY(node.elements());
  for (const JsonNode& element : elements) list.push_back(SW_TRY(element.integer()));
  return ArgValue{std::move(list)};
}

Result<SizeExpr> parse_expr(const JsonNode& node, const KnownNames& known,
                            const std::vector<std::string>& loops) {
  std::string text;
  if (node.value().is_number_integer()) {
    text = std::to_string(SW_TRY(node.integer()));
  } else {
    text = SW_TRY(node.text());
  }
  Result<SizeExpr> expr = SizeExpr::parse(text);
  if (!expr) return refused(node, std::move(expr).error());
  for (const std::string& name : expr->names()) {
    if (!known.sizes.contains(name) && std::ranges::find(loops, name) == loops.end()) {
      return node.invalid(fmt::format("size '{}'", name), "one that 'sizes' defines");
    }
  }
  return expr;
}

Result<std::optional<Condition>> parse_condition(const JsonNode& node, const KnownNames& known) {
  const std::optional<JsonNode> if_node = node.find("if");
  const std::optional<JsonNode> unless = node.find("unless");
  if (!if_node && !unless) return std::optional<Condition>{};
  if (if_node && unless) return node.invalid("'if' and 'unless'", "one of them");
  const JsonNode& named = if_node ? *if_node : *unless;
  Condition condition{SW_TRY(named.text()), if_node.has_value()};
  if (!known.sizes.contains(condition.size)) {
    return named.invalid(fmt::format("size '{}'", condition.size), "one that 'sizes' defines");
  }
  return std::optional<Condition>{std::move(condition)};
}

Result<bool> flag_or(const JsonNode& node, std::string_view key, bool otherwise) {
  const std::optional<JsonNode> member = node.find(key);
  return member ? member->boolean() : Result<bool>(otherwise);
}

Result<std::vector<std::string>> texts_or_none(const JsonNode& node, std::string_view key) {
  const std::optional<JsonNode> member = node.find(key);
  return member ? member->texts() : Result<std::vector<std::string>>(std::vector<std::string>{});
}

namespace {

/// A key as a path from the root of config.json. A leading / says that it is one already.
std::string config_path(std::string_view key, const KnownNames& known) {
  if (key.starts_with('/')) return std::string(key.substr(1));
  if (known.config_section.empty()) return std::string(key);
  const bool negated = key.starts_with('!');
  return fmt::format("{}{}.{}", negated ? "!" : "", known.config_section,
                     key.substr(negated ? 1 : 0));
}

Result<std::vector<std::string>> config_paths(const JsonNode& node, const KnownNames& known) {
  std::vector<std::string> keys = SW_TRY(texts_or_none(node, "hf"));
  for (std::string& key : keys) key = config_path(key, known);
  return keys;
}

Result<NamedSizes> parse_named_sizes(const JsonNode& node, const KnownNames& known) {
  SW_TRY(node.only({"hf", "sizes"}));
  NamedSizes named;
  const JsonNode key = SW_TRY(node.at("hf"));
  named.key = config_path(SW_TRY(key.text()), known);
  const JsonNode sizes = SW_TRY(node.at("sizes"));
  const std::vector<std::pair<std::string, JsonNode>> members = SW_TRY(sizes.members());
  for (const auto& [name, size] : members) {
    named.sizes.emplace_back(name, SW_TRY(size.integer()));
  }
  return named;
}

Result<SizeShown> parse_shown_by(const JsonNode& node) {
  SW_TRY(node.only({"hf", "megatron", "axis"}));
  SizeShown shown;
  const JsonNode hf = SW_TRY(node.at("hf"));
  shown.hf = SW_TRY(hf.text());
  if (const std::optional<JsonNode> megatron = node.find("megatron")) {
    shown.megatron = SW_TRY(megatron->text());
  }
  const JsonNode axis = SW_TRY(node.at("axis"));
  const std::int64_t number = SW_TRY(axis.integer());
  if (number < 0 || number >= kMaxAxes) {
    return axis.invalid(fmt::format("{}", number), "an axis, counted from 0");
  }
  shown.axis = static_cast<int>(number);
  return shown;
}

}  // namespace

Result<std::optional<double>> parse_epsilon(const JsonNode& root, std::string_view key) {
  const std::optional<JsonNode> node = root.find(key);
  if (!node || node->value().is_null()) return std::optional<double>();
  const Json& value = node->value();
  if (value.is_number_float() && value.get<double>() > 0.0)
    return std::optional(value.get<double>());
  return node->invalid(value.dump(), "a number above 0, or null");
}

Result<SizeRule> parse_size_rule(const std::string& name, const JsonNode& node,
                                 const KnownNames& known) {
  SW_TRY(node.only({"hf", "args", "args_if", "none_without", "named", "default", "optional", "flag",
                    "first_wins", "each_window", "each_from", "each_listed", "each_over",
                    "each_entry", "shown_by"}));
  SizeRule rule;
  rule.name = name;
  rule.hf = SW_TRY(config_paths(node, known));
  rule.args = SW_TRY(texts_or_none(node, "args"));
  if (const std::optional<JsonNode> args_if = node.find("args_if")) {
    rule.args_if = SW_TRY(args_if->text());
  }
  if (const std::optional<JsonNode> needed = node.find("none_without")) {
    rule.none_without = SW_TRY(needed->text());
    if (!known.sizes.contains(rule.none_without)) {
      return needed->invalid(fmt::format("size '{}'", rule.none_without),
                             "one that 'sizes' defines");
    }
  }
  if (const std::optional<JsonNode> named = node.find("named")) {
    rule.named = SW_TRY(parse_named_sizes(*named, known));
  }
  if (const std::optional<JsonNode> fallback = node.find("default")) {
    std::vector<JsonNode> expressions{*fallback};
    if (fallback->is_array()) expressions = SW_TRY(fallback->elements());
    for (const JsonNode& expression : expressions) {
      rule.fallbacks.push_back(SW_TRY(parse_expr(expression, known)));
      const std::vector<std::string> names = rule.fallbacks.back().names();
      if (std::ranges::find(names, name) != names.end()) {
        return expression.invalid(fmt::format("'{}' itself", name), "other sizes");
      }
    }
  }
  rule.optional = SW_TRY(flag_or(node, "optional", false));
  rule.flag = SW_TRY(flag_or(node, "flag", false));
  rule.first_wins = SW_TRY(flag_or(node, "first_wins", false));
  rule.each_window = SW_TRY(flag_or(node, "each_window", false));
  rule.each_listed = SW_TRY(flag_or(node, "each_listed", false));
  rule.each_entry = SW_TRY(flag_or(node, "each_entry", false));
  if (const std::optional<JsonNode> over = node.find("each_over")) {
    rule.each_over = SW_TRY(over->integer());
  }
  if (const std::optional<JsonNode> shown = node.find("shown_by")) {
    std::vector<JsonNode> list{*shown};
    if (shown->is_array()) list = SW_TRY(shown->elements());
    for (const JsonNode& each : list) rule.shown_by.push_back(SW_TRY(parse_shown_by(each)));
  }
  if (const std::optional<JsonNode> from = node.find("each_from")) {
    rule.each_from = SW_TRY(from->text());
    if (!known.sizes.contains(rule.each_from)) {
      return from->invalid(fmt::format("size '{}'", rule.each_from), "one that 'sizes' defines");
    }
    return rule;
  }
  if (rule.hf.empty() && rule.args.empty() && rule.fallbacks.empty()) {
    return node.invalid("no source", "'hf', 'args' or 'default'");
  }
  return rule;
}

namespace {

Result<ConfigRule::Kind> parse_kind(const JsonNode& node) {
  using Kind = ConfigRule::Kind;
  const std::optional<JsonNode> named = node.find("kind");
  if (!named) return Kind::kPair;
  const std::string kind = SW_TRY(named->text());
  if (kind == "pair") return Kind::kPair;
  if (kind == "window") return Kind::kWindow;
  if (kind == "dense_first") return Kind::kDenseFirst;
  if (kind == "sparse_step") return Kind::kSparseStep;
  if (kind == "alike") return Kind::kAlike;
  if (kind == "linear_attention") return Kind::kLinearAttention;
  if (kind == "block_pattern") return Kind::kBlockPattern;
  if (kind == "window_layers") return Kind::kWindowLayers;
  if (kind == "window_pattern") return Kind::kWindowPattern;
  if (kind == "listed") return Kind::kListed;
  if (kind == "inverse_sqrt") return Kind::kInverseSqrt;
  if (kind == "fraction") return Kind::kFraction;
  if (kind == "expert_range") return Kind::kExpertRange;
  if (kind == "expert_numbers") return Kind::kExpertNumbers;
  if (kind == "expert_types") return Kind::kExpertTypes;
  if (kind == "indexer_layers") return Kind::kIndexerLayers;
  if (kind == "inverted") return Kind::kInverted;
  if (kind == "encoded") return Kind::kEncoded;
  return named->invalid(
      fmt::format("'{}'", kind),
      "pair, window, dense_first, sparse_step, alike, window_layers, "
      "window_pattern, listed, inverse_sqrt, fraction, expert_range, "
      "expert_numbers, expert_types, indexer_layers, inverted, encoded, linear_attention or "
      "block_pattern");
}

Result<std::optional<ArgValue>> value_of(const JsonNode& node, std::string_view key) {
  const std::optional<JsonNode> member = node.find(key);
  if (!member) return std::optional<ArgValue>{};
  return std::optional<ArgValue>{SW_TRY(parse_value(*member))};
}

Status parse_map(ConfigRule& rule, const JsonNode& node) {
  const std::optional<JsonNode> list = node.find("map");
  if (!list) return {};
  const std::vector<JsonNode> pairs = SW_TRY(list->elements());
  for (const JsonNode& pair : pairs) {
    const std::vector<JsonNode> two = SW_TRY(pair.elements());
    if (two.size() != 2) {
      return pair.invalid(fmt::format("{} values", two.size()), "an HF value and an argument");
    }
    ArgValue hf = SW_TRY(parse_value(two[0]));
    ArgValue argument = SW_TRY(parse_value(two[1]));
    rule.map.emplace_back(std::move(hf), std::move(argument));
  }
  return {};
}

Status check_config_rule(const ConfigRule& rule, const JsonNode& node) {
  if (rule.hf.empty() && rule.args.empty()) return node.invalid("no names", "'hf' or 'args'");
  if (rule.kind == ConfigRule::Kind::kAlike) {
    if (rule.hf.size() > 1 && rule.args.empty() && rule.fallback) return {};
    return node.invalid("other members than 'alike' has", "several 'hf' and their 'default'");
  }
  const bool is_pair = !rule.hf.empty() && !rule.args.empty();
  const bool is_given = rule.value || rule.size || rule.fallback;
  if (!is_pair && !is_given) {
    return node.invalid("names of one side only", "'value', 'size' or 'default' with it");
  }
  if (rule.flag && !rule.size) return node.invalid("'flag' without 'size'", "both");
  if (rule.value && rule.size) return node.invalid("'value' and 'size'", "one of them");
  if (rule.kind != ConfigRule::Kind::kPair && !is_pair) {
    return node.invalid("names of one side only", "'hf' and 'args'");
  }
  const bool counts_blocks = rule.kind == ConfigRule::Kind::kBlockPattern;
  if (!counts_blocks && (rule.kind == ConfigRule::Kind::kFraction) != (rule.size && is_pair)) {
    return node.invalid("'size' with names of both sides",
                        "it for 'fraction' and 'block_pattern', and only there");
  }
  if (rule.inert && (!is_pair || rule.kind != ConfigRule::Kind::kPair)) {
    return node.invalid("'inert' without a pair", "names of both sides");
  }
  const bool is_plain_pair = is_pair && rule.kind == ConfigRule::Kind::kPair;
  if (rule.unset && (!is_plain_pair || rule.value || rule.size || rule.when_set)) {
    return node.invalid("'unset' without a pair",
                        "names of both sides, without 'value', 'size' and 'when_set'");
  }
  if (rule.kind == ConfigRule::Kind::kExpertRange && rule.hf.size() != 3) {
    return node.invalid(translated("{} HF names", rule.hf.size()), "first, last and interval");
  }
  if (rule.kind == ConfigRule::Kind::kIndexerLayers &&
      (rule.hf.size() != 3 || rule.args.size() != 2)) {
    return node.invalid(
        translated("{} HF names and {} arguments", rule.hf.size(), rule.args.size()),
        "the list of layers, and on both sides frequency and offset");
  }
  if (rule.kind == ConfigRule::Kind::kSparseStep && rule.hf.size() != 2) {
    return node.invalid(translated("{} HF names", rule.hf.size()), "the step and the dense layers");
  }
  const bool lists_kinds = rule.kind == ConfigRule::Kind::kLinearAttention ||
                           rule.kind == ConfigRule::Kind::kBlockPattern;
  const bool may_number = rule.kind == ConfigRule::Kind::kLinearAttention && rule.hf.size() == 4;
  if (lists_kinds && rule.hf.size() != 2 && !may_number) {
    return node.invalid(translated("{} HF names", rule.hf.size()),
                        "the list of layers and its shorter form");
  }
  if (!lists_kinds && !rule.shown_by.empty()) {
    return node.invalid("'shown_by'", "it where layers are listed by kind");
  }
  return {};
}

}  // namespace

Result<ConfigRule> parse_config_rule(const std::string& name, const JsonNode& node,
                                     const KnownNames& known) {
  SW_TRY(node.only({"kind", "hf", "args", "value", "size", "default", "map", "else", "when_set",
                    "unset", "if", "integer", "flag", "shown_by", "inert"}));
  ConfigRule rule;
  rule.name = name;
  rule.kind = SW_TRY(parse_kind(node));
  rule.hf = SW_TRY(config_paths(node, known));
  rule.args = SW_TRY(texts_or_none(node, "args"));
  rule.value = SW_TRY(value_of(node, "value"));
  rule.fallback = SW_TRY(value_of(node, "default"));
  rule.otherwise = SW_TRY(value_of(node, "else"));
  rule.when_set = SW_TRY(value_of(node, "when_set"));
  rule.unset = SW_TRY(value_of(node, "unset"));
  rule.integer = SW_TRY(flag_or(node, "integer", false));
  rule.flag = SW_TRY(flag_or(node, "flag", false));
  rule.inert = SW_TRY(flag_or(node, "inert", false));
  if (const std::optional<JsonNode> size = node.find("size")) {
    rule.size = SW_TRY(parse_expr(*size, known));
  }
  SW_TRY(parse_map(rule, node));
  if (const std::optional<JsonNode> conditions = node.find("if")) {
    const auto members = SW_TRY(conditions->members());
    for (const auto& [key, value] : members) {
      rule.conditions.emplace_back(config_path(key, known), SW_TRY(parse_value(value)));
    }
  }
  if (const std::optional<JsonNode> shown = node.find("shown_by")) {
    const auto members = SW_TRY(shown->members());
    for (const auto& [layer_kind, named] : members) {
      rule.shown_by.emplace_back(layer_kind, std::vector<NameTemplate>{});
      const std::vector<std::string> texts = SW_TRY(named.texts());
      for (const std::string& text : texts) {
        Result<NameTemplate> tensor = NameTemplate::parse(text);
        if (!tensor) return refused(named, std::move(tensor).error());
        rule.shown_by.back().second.push_back(*std::move(tensor));
      }
    }
  }
  SW_TRY(check_config_rule(rule, node));
  return rule;
}

}  // namespace shardwright

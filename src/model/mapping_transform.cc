// SPDX-License-Identifier: Apache-2.0
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "base/translated.h"
#include "model/mapping_parse.h"

namespace shardwright {
namespace {

constexpr std::size_t kMaxParts = 64;

/// What every kind of transform needs while it is read.
struct Context {
  const JsonNode& node;
  const KnownNames& known;
  const std::vector<std::string>& loops;

  [[nodiscard]] Result<SizeExpr> expr(const JsonNode& at) const {
    return parse_expr(at, known, loops);
  }
  /// The expression of that member, or one of its own.
  [[nodiscard]] Result<SizeExpr> expr_or(const JsonNode& object, std::string_view key,
                                         std::string_view otherwise) const {
    const std::optional<JsonNode> member = object.find(key);
    if (member) return expr(*member);
    const Json text = std::string(otherwise);
    return expr(JsonNode(text, object.path() + "/" + std::string(key)));
  }
};

Result<int> axis_of(const JsonNode& node, std::string_view key, int otherwise, int most) {
  const std::optional<JsonNode> member = node.find(key);
  if (!member) return otherwise;
  const std::int64_t value = SW_TRY(member->integer());
  if (value < 0 || value > most) {
    return member->invalid(fmt::format("{}", value), fmt::format("0 to {}", most));
  }
  return static_cast<int>(value);
}

/// The roles of a name object, in its order; empty for a single name.
Result<std::vector<std::string>> roles_of(const JsonNode& names) {
  std::vector<std::string> roles;
  if (!names.is_object()) return roles;
  const auto members = SW_TRY(names.members());
  for (const auto& [role, name] : members) roles.push_back(role);
  if (roles.empty() || roles.size() > kMaxParts) {
    return names.invalid(fmt::format("{} roles", roles.size()), fmt::format("1 to {}", kMaxParts));
  }
  return roles;
}

Status expect_single(const JsonNode& names, std::string_view transform) {
  if (names.is_text()) return {};
  return names.invalid("no single name", translated("one name: the transform is {}", transform));
}

Result<std::size_t> expect_several(const JsonNode& names, std::string_view transform) {
  std::size_t count = 1;
  if (names.is_array()) count = SW_TRY(names.elements()).size();
  if (count >= 2 && count <= kMaxParts) return count;
  return names.invalid(fmt::format("{} name{}", count, count == 1 ? "" : "s"),
                       translated("a list of several: the transform is {}", transform));
}

// A split may leave the last part without one.
Result<std::vector<SizeExpr>> extents_of(const Context& context, std::size_t count,
                                         bool may_end_early = false) {
  std::vector<SizeExpr> extents;
  const std::optional<JsonNode> list = context.node.find("extents");
  if (!list) return extents;
  const std::vector<JsonNode> elements = SW_TRY(list->elements());
  for (const JsonNode& element : elements) extents.push_back(SW_TRY(context.expr(element)));
  if (extents.size() != count && !(may_end_early && extents.size() + 1 == count)) {
    return list->invalid(fmt::format("{} extents", extents.size()),
                         translated("{}, one per name", count));
  }
  return extents;
}

constexpr std::array<std::string_view, 3> kQkvRoles = {"q", "k", "v"};

/// Roles that HF has no tensor for: what Megatron has there.
struct AbsentRoles {
  std::vector<std::pair<std::string, std::string>> roles;  ///< and the role repeated, or nothing
  std::optional<double> fill;                              ///< for those that repeat none

  [[nodiscard]] const std::string* of(std::string_view role) const {
    const auto found =
        std::ranges::find(roles, role, [](const auto& entry) { return entry.first; });
    return found == roles.end() ? nullptr : &found->second;
  }
};

Status parse_absent(const Context& context, const std::vector<std::string>& present,
                    AbsentRoles& absent) {
  const std::optional<JsonNode> node = context.node.find("absent");
  if (!node) return {};
  const auto members = SW_TRY(node->members());
  for (const auto& [role, what] : members) {
    // Parts are numbered by their roles, so only those behind all present ones may be absent.
    if (role != "v" && !(role == "k" && node->find("v"))) {
      return node->invalid(fmt::format("'{}'", role), "v, or k and v");
    }
    if (what.value().is_number()) {
      const double fill = SW_TRY(what.number());
      if (absent.fill.value_or(fill) != fill) return node->invalid("two numbers", "one");
      absent.fill = fill;
      absent.roles.emplace_back(role, "");
      continue;
    }
    const std::string source = SW_TRY(what.text());
    if (std::ranges::find(present, source) == present.end() || source == "q") {
      return what.invalid(fmt::format("'{}'", source), "a number, or the role k that is there");
    }
    absent.roles.emplace_back(role, source);
  }
  return {};
}

Result<ParsedTransform> parse_qkv(const Context& context, const JsonNode& hf) {
  ParsedTransform parsed;
  Grouped grouped;
  AbsentRoles absent;
  grouped.packed = hf.is_text();
  if (!grouped.packed) {
    const std::vector<std::string> roles = SW_TRY(roles_of(hf));
    SW_TRY(parse_absent(context, roles, absent));
    for (const std::string_view role : kQkvRoles) {
      if (absent.of(role) == nullptr) parsed.hf_roles.emplace_back(role);
    }
    if (!std::ranges::is_permutation(roles, parsed.hf_roles)) {
      return hf.invalid(fmt::format("roles {}", fmt::join(roles, ", ")),
                        fmt::format("{}", fmt::join(parsed.hf_roles, ", ")));
    }
    grouped.fill = absent.fill;
  }
  const auto expr = [&](const std::string& text) {
    const Json value = text;
    return context.expr(JsonNode(value, context.node.path()));
  };
  for (const std::string_view key : {"heads", "groups", "head_dim"}) {
    // They become factors of larger expressions, which have no parentheses.
    const std::optional<JsonNode> member = context.node.find(key);
    if (!member) continue;
    const std::string text = SW_TRY(member->text());
    if (text.find_first_of("+-*/ ") != std::string::npos) {
      return member->invalid(fmt::format("'{}'", text), "the name of one size");
    }
  }
  const SizeExpr heads = SW_TRY(context.expr_or(context.node, "heads", "heads"));
  grouped.count = SW_TRY(context.expr_or(context.node, "groups", "groups"));
  const SizeExpr dim = SW_TRY(context.expr_or(context.node, "head_dim", "head_dim"));
  const SizeExpr one = SW_TRY(expr("1"));
  const SizeExpr zero = SW_TRY(expr("0"));
  if (SW_TRY(flag_or(context.node, "observed", false))) {
    if (grouped.packed || !absent.roles.empty()) {
      return context.node.invalid("'observed'", "it where q, k and v have a tensor each");
    }
    grouped.counted_heads = heads;
  }
  const std::string shared = heads.text() + " / " + grouped.count.text();
  const bool gated = SW_TRY(flag_or(context.node, "output_gate", false));
  if (gated) {
    // Each query head's rows are followed by its gate's; Megatron keeps a group's heads together.
    const SizeExpr per_group = SW_TRY(expr(shared));
    const SizeExpr twice = SW_TRY(expr("2 * " + dim.text()));
    grouped.parts.push_back(GroupPart{0, dim, per_group, twice, zero, one});
    grouped.parts.push_back(GroupPart{0, dim, per_group, twice, dim, one});
  } else {
    const SizeExpr rows = SW_TRY(expr(shared + " * " + dim.text()));
    grouped.parts.push_back(GroupPart{0, rows, one, rows, zero, one});
  }
  for (const std::string_view role : {"k", "v"}) {
    const std::string* const source = absent.of(role);
    const bool repeats = source != nullptr && !source->empty();
    const std::string_view from = repeats ? std::string_view(*source) : role;
    const auto place = std::ranges::find(kQkvRoles, from) - kQkvRoles.begin();
    grouped.parts.push_back(GroupPart{static_cast<int>(place), dim, one, dim, zero, one, repeats,
                                      source != nullptr && source->empty()});
  }
  parsed.transform = std::move(grouped);
  return parsed;
}

/// The parts of the groups are on the side that names them by role.
Result<ParsedTransform> parse_grouped(const Context& context, const JsonNode& hf,
                                      const JsonNode& megatron) {
  ParsedTransform parsed;
  Grouped grouped;
  grouped.dealt = megatron.is_object();
  if (grouped.dealt && !hf.is_text()) {
    return hf.invalid("several HF names", "one: 'megatron' names the parts");
  }
  grouped.packed = hf.is_text() && !grouped.dealt;
  const JsonNode count = SW_TRY(context.node.at("count"));
  grouped.count = SW_TRY(context.expr(count));
  std::vector<std::string> roles = SW_TRY(roles_of(grouped.dealt ? megatron : hf));
  (grouped.dealt ? parsed.megatron_roles : parsed.hf_roles) = roles;
  std::vector<bool> used(roles.size(), false);
  const JsonNode list = SW_TRY(context.node.at("parts"));
  const std::vector<JsonNode> parts = SW_TRY(list.elements());
  if (parts.empty() || parts.size() > kMaxParts) {
    return list.invalid(fmt::format("{} parts", parts.size()), fmt::format("1 to {}", kMaxParts));
  }
  for (const JsonNode& part : parts) {
    SW_TRY(part.only({"role", "rows", "repeat", "stride", "offset", "copies"}));
    const JsonNode role_node = SW_TRY(part.at("role"));
    const std::string role = SW_TRY(role_node.text());
    auto found = std::ranges::find(roles, role);
    if (found == roles.end()) {
      if (!grouped.packed) {
        return role_node.invalid(fmt::format("role '{}'", role),
                                 translated("one of {}", fmt::join(roles, ", ")));
      }
      roles.push_back(role);  // a packed tensor's sections are named by the parts alone
      used.push_back(false);
      found = roles.end() - 1;
    }
    GroupPart result;
    result.source = static_cast<int>(found - roles.begin());
    used[static_cast<std::size_t>(result.source)] = true;
    const JsonNode rows = SW_TRY(part.at("rows"));
    result.rows = SW_TRY(context.expr(rows));
    result.repeat = SW_TRY(context.expr_or(part, "repeat", "1"));
    result.stride = SW_TRY(context.expr_or(part, "stride", result.rows.text()));
    result.offset = SW_TRY(context.expr_or(part, "offset", "0"));
    result.copies = SW_TRY(context.expr_or(part, "copies", "1"));
    if (part.find("copies") && (grouped.dealt || context.node.find("permute"))) {
      return part.invalid("'copies'", "none where 'megatron' names the parts, or beside 'permute'");
    }
    grouped.parts.push_back(std::move(result));
  }
  const auto unused = std::ranges::find(used, false);
  if (unused != used.end()) {
    return list.invalid(
        translated("no part for '{}'", roles[static_cast<std::size_t>(unused - used.begin())]),
        "one for every role");
  }
  parsed.transform = std::move(grouped);
  return parsed;
}

Result<ParsedTransform> parse_constant(const Context& context) {
  if (context.node.find("hf")) {
    return context.node.invalid("'hf'", "none: the transform is constant");
  }
  if (!context.node.find("shape")) {
    return context.node.invalid("no 'shape'", "one: nothing else gives a constant's extents");
  }
  const JsonNode value = SW_TRY(context.node.at("value"));
  const bool is_unused = SW_TRY(flag_or(context.node, "unused", false));
  return ParsedTransform{Constant{SW_TRY(value.number()), is_unused}, {}, {}};
}

Result<ParsedTransform> parse_unit_axis(const Context& context, int axis) {
  UnitAxis unit{axis, SW_TRY(axis_of(context.node, "count", 1, kMaxAxes - 1)), false};
  if (unit.count < 1) return context.node.invalid("a 'count' of 0", "1 or more");
  if (const std::optional<JsonNode> side = context.node.find("side")) {
    const std::string name = SW_TRY(side->text());
    if (name != "hf" && name != "megatron") {
      return side->invalid(fmt::format("'{}'", name), "hf or megatron");
    }
    unit.in_megatron = name == "megatron";
  }
  return ParsedTransform{unit, {}, {}};
}

Result<ParsedTransform> parse_named_transform(const Context& context, std::string_view kind) {
  const JsonNode megatron = SW_TRY(context.node.at("megatron"));
  const bool is_dealt = kind == "grouped" && megatron.is_object();
  const bool has_several = kind == "split" || kind == "unstack" || kind == "repeat";
  if (!has_several && !is_dealt) SW_TRY(expect_single(megatron, kind));
  if (kind == "constant") return parse_constant(context);
  const JsonNode hf = SW_TRY(context.node.at("hf"));
  if ((kind == "qkv" || kind == "grouped") && !hf.is_text() && !hf.is_object()) {
    return hf.invalid("neither", "one name, or names by role");
  }
  if (kind == "qkv") return parse_qkv(context, hf);
  if (kind == "grouped") return parse_grouped(context, hf, megatron);
  const int axis = SW_TRY(axis_of(context.node, "axis", 0, kMaxAxes - 1));
  if (kind == "concat") {
    const std::size_t count = SW_TRY(expect_several(hf, kind));
    return ParsedTransform{Concat{axis, SW_TRY(extents_of(context, count))}, {}, {}};
  }
  SW_TRY(expect_single(hf, kind));
  if (kind == "unstack") {
    SW_TRY(expect_several(megatron, kind));
    if (const auto permute = context.node.find("permute")) {
      return permute->invalid("'permute'", "none: the transform is unstack");
    }
    return ParsedTransform{Unstack{axis}, {}, {}};
  }
  if (kind == "split") {
    const std::size_t count = SW_TRY(expect_several(megatron, kind));
    return ParsedTransform{Split{axis, SW_TRY(extents_of(context, count, true))}, {}, {}};
  }
  if (kind == "repeat") {
    SW_TRY(expect_several(megatron, kind));
    return ParsedTransform{Repeat{}, {}, {}};
  }
  if (kind == "interleaved") {
    const int ways = SW_TRY(axis_of(context.node, "ways", 2, static_cast<int>(kMaxParts)));
    if (ways < 2) return context.node.invalid(fmt::format("{} ways", ways), "2 or more");
    return ParsedTransform{Interleaved{axis, ways}, {}, {}};
  }
  if (kind == "swapped") return ParsedTransform{Swapped{axis}, {}, {}};
  if (kind == "unit_axis") {
    if (context.node.find("permute")) {
      return context.node.invalid("'permute'", "none: the transform is unit_axis");
    }
    return parse_unit_axis(context, axis);
  }
  return ParsedTransform{Rename{}, {}, {}};
}

/// The fields that each transform has of its own.
struct TransformFields {
  std::string_view kind;
  std::vector<std::string_view> fields;
};

}  // namespace

Result<ParsedTransform> parse_transform(const JsonNode& node, const KnownNames& known,
                                        const std::vector<std::string>& loops) {
  const std::array<TransformFields, 11> kinds{
      {{"rename", {}},
       {"concat", {"axis", "extents"}},
       {"split", {"axis", "extents"}},
       {"repeat", {}},
       {"unstack", {"axis"}},
       {"qkv", {"heads", "groups", "head_dim", "output_gate", "absent", "observed"}},
       {"grouped", {"count", "parts"}},
       {"interleaved", {"axis", "ways"}},
       {"swapped", {"axis"}},
       {"unit_axis", {"axis", "count", "side"}},
       {"constant", {"value", "unused"}}}};
  std::string kind = "rename";
  const std::optional<JsonNode> named = node.find("transform");
  if (named) kind = SW_TRY(named->text());
  const auto entry = std::ranges::find(kinds, kind, &TransformFields::kind);
  if (entry == kinds.end()) {
    return named->invalid(fmt::format("'{}'", kind),
                          "rename, concat, split, repeat, unstack, qkv, grouped, interleaved, "
                          "swapped, unit_axis or constant");
  }
  for (const TransformFields& other : kinds) {
    for (const std::string_view field : other.fields) {
      if (node.find(field) && std::ranges::find(entry->fields, field) == entry->fields.end()) {
        return node.invalid(fmt::format("field '{}'", field),
                            translated("none: the transform is {}", kind));
      }
    }
  }
  return parse_named_transform(Context{node, known, loops}, kind);
}

}  // namespace shardwright

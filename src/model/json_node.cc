// SPDX-License-Identifier: Apache-2.0
#include "model/json_node.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/fail.h"

namespace shardwright {
namespace {

std::string_view kind_of(const Json& value) { return value.type_name(); }

}  // namespace

bool JsonNode::is_text() const { return value_->is_string(); }
bool JsonNode::is_object() const { return value_->is_object(); }
bool JsonNode::is_array() const { return value_->is_array(); }
bool JsonNode::is_null() const { return value_->is_null(); }

std::unexpected<Error> JsonNode::invalid(std::string_view found, std::string_view expected) const {
  return fail(Code::kMappingInvalid, "{}: found {}, expected {}; see models/schema.json", path_,
              found, expected);
}

std::unexpected<Error> JsonNode::expected(std::string_view what) const {
  return invalid(kind_of(*value_), what);
}

Result<std::string> JsonNode::text() const {
  if (!value_->is_string()) return expected("a string");
  return value_->get<std::string>();
}

Result<bool> JsonNode::boolean() const {
  if (!value_->is_boolean()) return expected("true or false");
  return value_->get<bool>();
}

Result<std::int64_t> JsonNode::integer() const {
  if (!value_->is_number_integer()) return expected("a whole number");
  if (value_->is_number_unsigned() &&
      value_->get<std::uint64_t>() > static_cast<std::uint64_t>(INT64_MAX)) {
    return expected("a whole number of 64 bits");
  }
  return value_->get<std::int64_t>();
}

Result<double> JsonNode::number() const {
  if (!value_->is_number()) return expected("a number");
  return value_->get<double>();
}

Result<std::vector<JsonNode>> JsonNode::elements() const {
  if (!value_->is_array()) return expected("a list");
  std::vector<JsonNode> nodes;
  for (std::size_t i = 0; i < value_->size(); ++i) {
    nodes.emplace_back((*value_)[i], fmt::format("{}/{}", path_, i));
  }
  return nodes;
}

Result<std::vector<std::pair<std::string, JsonNode>>> JsonNode::members() const {
  if (!value_->is_object()) return expected("an object");
  std::vector<std::pair<std::string, JsonNode>> nodes;
  for (const auto& [key, value] : value_->items()) {
    nodes.emplace_back(key, JsonNode(value, fmt::format("{}/{}", path_, key)));
  }
  return nodes;
}

Result<std::vector<std::string>> JsonNode::texts() const {
  if (is_text()) return std::vector{value_->get<std::string>()};
  std::vector<std::string> all;
  if (!value_->is_array()) return expected("a string or a list of strings");
  const std::vector<JsonNode> nodes = SW_TRY(elements());
  for (const JsonNode& node : nodes) all.push_back(SW_TRY(node.text()));
  return all;
}

std::optional<JsonNode> JsonNode::find(std::string_view key) const {
  if (!value_->is_object()) return std::nullopt;
  const auto found = value_->find(std::string(key));
  if (found == value_->end()) return std::nullopt;
  return JsonNode(*found, fmt::format("{}/{}", path_, key));
}

Result<JsonNode> JsonNode::at(std::string_view key) const {
  std::optional<JsonNode> node = find(key);
  if (!node) return invalid(fmt::format("no '{}'", key), "one");
  return *node;
}

Status JsonNode::only(std::initializer_list<std::string_view> keys) const {
  const auto all = SW_TRY(members());
  for (const auto& [key, node] : all) {
    if (std::ranges::find(keys, key) == keys.end()) {
      return node.invalid("an unknown field", translated("one of {}", fmt::join(keys, ", ")));
    }
  }
  return {};
}

}  // namespace shardwright

// SPDX-License-Identifier: Apache-2.0
#include "model/json_node.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/fail.h"

namespace shardwright {

std::string JsonNode::Step::text() const {
  if (!above) return *root;
  const std::string below = key.data() == nullptr ? std::to_string(index) : std::string(key);
  return above->text() + "/" + below;
}

JsonNode::JsonNode(const Json& value, std::string path)
    : JsonNode(value, Step{nullptr, std::make_shared<const std::string>(std::move(path))}) {}

JsonNode::JsonNode(const JsonMember& member, std::string path)
    : JsonNode(member, Step{nullptr, std::make_shared<const std::string>(std::move(path))}) {}

JsonNode::JsonNode(const JsonMember& member, Step step)
    : value_(member.value), step_(std::move(step)) {
  static const Json kObject = Json::object();
  if (value_ != nullptr) return;
  value_ = &kObject;
  put_together_ = &member.members;
}

const std::shared_ptr<const JsonNode::Step>& JsonNode::here() const {
  if (!here_) here_ = std::make_shared<const Step>(step_);
  return here_;
}

bool JsonNode::is_text() const { return value_->is_string(); }
bool JsonNode::is_object() const { return value_->is_object(); }
bool JsonNode::is_array() const { return value_->is_array(); }
bool JsonNode::is_null() const { return value_->is_null(); }

template <typename Visit>
void JsonNode::each_member(const Visit& visit) const {
  if (put_together_ != nullptr) {
    for (const JsonMember& member : *put_together_) {
      if (visit(member.key, member)) return;
    }
  } else if (value_->is_object()) {
    for (const auto& [key, value] : value_->get_ref<const Json::object_t&>()) {
      if (visit(std::string_view(key), value)) return;
    }
  }
}

std::unexpected<Error> JsonNode::invalid(std::string_view found, std::string_view expected) const {
  return fail(Code::kMappingInvalid, "{}: found {}, expected {}; see models/schema.json", path(),
              found, expected);
}

std::unexpected<Error> JsonNode::expected(std::string_view what) const {
  return invalid(value_->type_name(), what);
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
  nodes.reserve(value_->size());
  for (std::size_t i = 0; i < value_->size(); ++i) {
    nodes.push_back({(*value_)[i], Step{here(), {}, {}, i}});
  }
  return nodes;
}

Result<std::vector<std::pair<std::string, JsonNode>>> JsonNode::members() const {
  if (!value_->is_object()) return expected("an object");
  std::vector<std::pair<std::string, JsonNode>> nodes;
  nodes.reserve(put_together_ != nullptr ? put_together_->size() : value_->size());
  each_member([&](std::string_view key, const auto& value) {
    nodes.emplace_back(key, JsonNode(value, Step{here(), {}, key}));
    return false;
  });
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
  std::optional<JsonNode> found;
  each_member([&](std::string_view each, const auto& value) {
    if (each == key) found = JsonNode(value, Step{here(), {}, each});
    return found.has_value();
  });
  return found;
}

Result<JsonNode> JsonNode::at(std::string_view key) const {
  std::optional<JsonNode> node = find(key);
  if (!node) return invalid(fmt::format("no '{}'", key), "one");
  return *std::move(node);
}

Status JsonNode::only(std::initializer_list<std::string_view> keys) const {
  if (!value_->is_object()) return expected("an object");
  Status status;
  each_member([&](std::string_view key, const auto& value) {
    if (std::ranges::find(keys, key) != keys.end()) return false;
    status = JsonNode(value, Step{here(), {}, key})
                 .invalid("an unknown field", translated("one of {}", fmt::join(keys, ", ")));
    return true;
  });
  return status;
}

}  // namespace shardwright

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/json_member.h"
#include "shardwright/error.h"

namespace shardwright {

/// A value inside a mapping file together with its place (`llama.json#/rules/3`), so that every
/// complaint can name the offender. Borrows the value, and its keys with it. Not for several
/// threads.
class JsonNode {
 public:
  JsonNode(const Json& value, std::string path);
  JsonNode(const JsonMember& member, std::string path);

  /// An empty object where that was put together.
  [[nodiscard]] const Json& value() const { return *value_; }
  [[nodiscard]] std::string path() const { return step_.text(); }
  [[nodiscard]] bool is_text() const;
  [[nodiscard]] bool is_object() const;
  [[nodiscard]] bool is_array() const;
  [[nodiscard]] bool is_null() const;

  /// The following give kMappingInvalid when the value is of another kind.
  [[nodiscard]] Result<std::string> text() const;
  [[nodiscard]] Result<bool> boolean() const;
  [[nodiscard]] Result<std::int64_t> integer() const;
  [[nodiscard]] Result<double> number() const;
  [[nodiscard]] Result<std::vector<JsonNode>> elements() const;
  [[nodiscard]] Result<std::vector<std::pair<std::string, JsonNode>>> members() const;
  /// One string, or a list of strings.
  [[nodiscard]] Result<std::vector<std::string>> texts() const;

  /// The member of that name, if the value is an object that has it.
  [[nodiscard]] std::optional<JsonNode> find(std::string_view key) const;
  /// Error: kMappingInvalid where the member is missing.
  [[nodiscard]] Result<JsonNode> at(std::string_view key) const;
  /// Error: kMappingInvalid when the object has another member.
  [[nodiscard]] Status only(std::initializer_list<std::string_view> keys) const;

  /// kMappingInvalid at this place.
  [[nodiscard]] std::unexpected<Error> invalid(std::string_view found,
                                               std::string_view expected) const;

 private:
  [[nodiscard]] std::unexpected<Error> expected(std::string_view what) const;

  /// Calls `visit(key, value)` for the members, in order, until it returns true. Both are borrowed;
  /// a value is a Json or a JsonMember.
  template <typename Visit>
  void each_member(const Visit& visit) const;

  /// A place as a step from the one above: there are a hundred thousand nodes, and hardly one is
  /// told.
  struct Step {
    std::shared_ptr<const Step> above;
    std::shared_ptr<const std::string> root = nullptr;  ///< the whole place where nothing is above
    std::string_view key = {};                          ///< of an object's member
    std::size_t index = 0;                              ///< of a list's element, which has no key

    [[nodiscard]] std::string text() const;
  };

  JsonNode(const Json& value, Step step) : value_(&value), step_(std::move(step)) {}
  JsonNode(const JsonMember& member, Step step);

  /// That of this node, which those below it share.
  [[nodiscard]] const std::shared_ptr<const Step>& here() const;

  const Json* value_;
  const std::vector<JsonMember>* put_together_ = nullptr;  ///< the members where `value_` has none
  Step step_;
  mutable std::shared_ptr<const Step> here_;  ///< once it was asked for
};

}  // namespace shardwright

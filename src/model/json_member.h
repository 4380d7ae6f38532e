// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string_view>
#include <vector>

namespace shardwright {

/// JSON whose objects keep the order in which they were written.
using Json = nlohmann::ordered_json;

/// A member of an object that is put together from members of several. Borrows keys and values: a
/// family is made of parts of those that it extends, and copies of all would take longer than the
/// rest.
struct JsonMember {
  std::string_view key;
  const Json* value = nullptr;  ///< nullptr: the object of `members`
  std::vector<JsonMember> members = {};
};

/// Nothing where there is none.
[[nodiscard]] const JsonMember* find_member(const std::vector<JsonMember>& members,
                                            std::string_view key);

/// The members of an object. A value that is none has none.
[[nodiscard]] std::vector<JsonMember> members_of(const Json& object);

/// Takes the place of the one of its key, or comes behind all.
void put_member(std::vector<JsonMember>& members, JsonMember member);

}  // namespace shardwright

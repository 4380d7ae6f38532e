// SPDX-License-Identifier: Apache-2.0
#include "model/json_member.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

namespace shardwright {

const JsonMember* find_member(const std::vector<JsonMember>& members, std::string_view key) {
  const auto found = std::ranges::find(members, key, &JsonMember::key);
  return found == members.end() ? nullptr : &*found;
}

std::vector<JsonMember> members_of(const Json& object) {
  std::vector<JsonMember> members;
  if (!object.is_object()) return members;
  members.reserve(object.size());
  for (const auto& [key, value] : object.get_ref<const Json::object_t&>()) {
    members.push_back({key, &value});
  }
  return members;
}

void put_member(std::vector<JsonMember>& members, JsonMember member) {
  const auto present = std::ranges::find(members, member.key, &JsonMember::key);
  if (present == members.end()) {
    members.push_back(std::move(member));
  } else {
    *present = std::move(member);
  }
}

}  // namespace shardwright

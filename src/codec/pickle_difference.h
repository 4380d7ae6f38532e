// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "codec/pickle_value.h"

// For the pickle tests: equality of value graphs.
namespace shardwright::pickle {

/// Why two graphs differ, or "" if they are equal: same kinds, payloads and references, and nodes
/// that have parts are shared in the one exactly where they are in the other.
inline std::string difference(const Document& left, const Document& right) {
  std::vector<std::uint32_t> partner(left.node_count(), 0);
  std::vector<std::uint32_t> reverse(right.node_count(), 0);
  std::vector<std::pair<Value, Value>> pending = {{left.root(), right.root()}};
  while (!pending.empty()) {
    const auto [a, b] = pending.back();
    pending.pop_back();
    if (a.kind() != b.kind()) {
      return std::string(kind_name(a.kind())) + " became " + std::string(kind_name(b.kind()));
    }
    if (a.text() != b.text()) return "text " + std::string(a.text());
    if (a.as_int() != b.as_int()) return "an int";
    if (a.is(Kind::kFloat)) {
      const double x = *a.as_double();
      const double y = *b.as_double();
      if (std::memcmp(&x, &y, sizeof x) != 0) return "a float";
    }
    std::vector<Value> a_parts;
    std::vector<Value> b_parts;
    left.append_references(a, a_parts);
    right.append_references(b, b_parts);
    if (a_parts.size() != b_parts.size()) return "number of parts";
    if (a_parts.empty()) continue;
    if (partner[a.id()] == b.id() + 1 && reverse[b.id()] == a.id() + 1) continue;
    if (partner[a.id()] != 0 || reverse[b.id()] != 0) return "sharing";
    partner[a.id()] = b.id() + 1;
    reverse[b.id()] = a.id() + 1;
    for (std::size_t i = 0; i < a_parts.size(); ++i) pending.emplace_back(a_parts[i], b_parts[i]);
  }
  return "";
}

}  // namespace shardwright::pickle

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "cli/json_writer.h"
#include "codec/pickle_value.h"

namespace shardwright::cli {

/// How much of a pickle is shown.
struct TreeLimits {
  std::int64_t depth = 4;
  std::int64_t nodes = 1000;  ///< altogether; one container gets at most a tenth, but ten
};

/// A pickle's value, described. Nothing in it was imported or called.
struct ValueNode {
  std::string label;  ///< the key, attribute or index within the parent
  std::string kind;   ///< `dict`, `global`, `call`, `object`, `tensor`, ...
  std::string text;   ///< the value, or what can be said of it in one line
  std::vector<ValueNode> children;
  std::uint64_t left_out = 0;  ///< children that the limits cut
};

/// Describes a value graph as a tree. Shared nodes appear wherever they are used; a node within
/// itself is shown as a cycle.
[[nodiscard]] ValueNode describe_value(pickle::Value root, const TreeLimits& limits);

/// One node a line, indented.
[[nodiscard]] std::string tree_text(const ValueNode& root);
void write_tree(JsonWriter& json, const ValueNode& node);

}  // namespace shardwright::cli

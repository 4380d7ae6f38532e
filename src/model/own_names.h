// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "model/name_rules.h"
#include "model/name_template.h"
#include "model/size_expr.h"

namespace shardwright {

/// One tensor under its trainer's name and Megatron's.
struct OwnNameRule {
  std::vector<NumberedName> stored;    ///< names that the trainer's versions have had
  std::vector<NameTemplate> megatron;  ///< several: its rows one behind the other
  std::vector<SizeExpr> extents;       ///< rows of each of those; none: all alike
  /// The number that only the stored name has: its values lie along a leading axis of Megatron's.
  std::string stack;
  /// Rows that each tensor rank has in several parts, as gate and up: put together as the ranks
  /// lie, they are not the model's.
  bool has_rank_parts = false;

  /// The numbers of whichever stored name it is.
  [[nodiscard]] std::optional<std::vector<Binding>> match(std::string_view name) const;
};

/// A buffer that the trainer does not save, by the name of the model that a run began with.
struct UnsavedBuffer {
  NumberedName hf;
  NameTemplate megatron;
};

/// What a trainer calls the tensors of models of some families that it holds as Megatron-Core does
/// (models/mlite/*.json).
struct OwnNames {
  std::string names;  ///< what they are called: `mlite_kimi_k2`
  std::vector<std::string> families;
  std::vector<OwnNameRule> rules;
  std::vector<UnsavedBuffer> buffers;
  std::vector<NumberedName> ignore;  ///< copies of other tensors

  [[nodiscard]] const OwnNameRule* find(std::string_view name) const;
  [[nodiscard]] bool ignores(std::string_view name) const;
};

/// Reads a file of such rules. Error: kMappingInvalid, with the place in the file.
[[nodiscard]] Result<OwnNames> parse_own_names(std::string_view json, std::string_view file_name);

/// Those of MLite.
[[nodiscard]] Result<std::vector<OwnNames>> built_in_mlite_names();

}  // namespace shardwright

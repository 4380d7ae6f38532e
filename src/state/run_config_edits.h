// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "layout/component.h"
#include "shardwright/checkpoint.h"

namespace shardwright {

/// What of a run_config.yaml is another's once its checkpoint has another layout.
struct RunConfigEdits {
  /// Sizes by the names of Megatron's arguments.
  std::vector<std::pair<std::string, ArgValue>> layout;
  /// What else of the model is otherwise, likewise by the names of arguments.
  std::vector<std::pair<std::string, ArgValue>> model;
  std::span<const Component> components;           ///< of a MIMO checkpoint; empty for others
  std::optional<DType> dtype;                      ///< the weights' where it changed
  std::optional<std::int64_t> vocabulary;          ///< rows that mean something, where it grew
  std::optional<std::int64_t> vocabulary_divisor;  ///< where the vocabulary was padded
  std::string_view format;  ///< as Megatron-Bridge calls it: torch_dist, torch, …
  bool has_prediction_layers = false;
  bool has_optimizer = false;
  bool has_rng = false;
};

/// Megatron-Bridge's run_config.yaml as it is after a conversion: sizes of the model (of each
/// component, where it is a MIMO one), types, and what the checkpoint holds are set, the folder
/// that the run saved to is taken out. An ordinary model's provider becomes that of a MIMO model,
/// and back. All other lines stay byte for byte. Errors: those of read_run_config and YamlLines.
[[nodiscard]] Result<std::string> edited_run_config(std::string_view yaml,
                                                    const RunConfigEdits& edits);

}  // namespace shardwright

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "layout/optimizer_groups.h"
#include "shardwright/catalog.h"

namespace shardwright {

/// Something that is wrong with a model's optimizer states.
struct WrongState {
  std::string tensor;    ///< the state or, where one is missing, its weight
  std::string what;      ///< a sentence about it, with the name and the way out
  bool is_lone = false;  ///< a state without a weight
};

/// What is known of the optimizer whose states they are.
struct RecordedOptimizer {
  NamedOptimizer named = NamedOptimizer::kUntold;
  bool keeps_master_weights = false;  ///< of each weight in bfloat16 or float16
};

/// A model's optimizer states, held against its weights.
struct StateFindings {
  std::vector<WrongState> wrong;
  /// Parameters without any state, where others have some: they may be frozen.
  std::vector<std::string> without;
};

/// A note on those, in words; empty where there are none.
[[nodiscard]] std::string note_on_frozen(const StateFindings& found);

/// Holds the optimizer states of a catalog with Megatron's names against its weights: each has one,
/// in whose shape it is, and a weight that has any state has those that the others of its optimizer
/// have. Where Muon or another trains matrices beside Adam, these are two optimizers; the parts of
/// a chain are, too. States in flat buffers have other names and are not looked at.
[[nodiscard]] StateFindings find_wrong_states(const Catalog& catalog, RecordedOptimizer optimizer);

}  // namespace shardwright

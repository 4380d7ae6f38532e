// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/notes.h"
#include "shardwright/checkpoint.h"

namespace shardwright {

/// What a run needs to go on with its optimizer, and its common state has not.
struct LostSettings {
  /// That no parameter group is there, a sentence: nothing says what the states were trained with,
  /// nor how many steps. Empty where there is one.
  std::string groups;
  /// That there are groups of Adam's and no state of any parameter, a sentence; else empty.
  std::string states;
  /// Sentences about the rest: parameters of a kind that no group is for, the scheduler.
  Notes others;
};

/// Holds the common state of a Megatron checkpoint against the optimizer states in its catalog,
/// which have names like the tensors'; nothing where it has none of either. Settings that entries
/// of their own hold (Megatron-FSDP's, a MIMO model's) are not looked for. Errors: those of
/// StateDocument::read.
[[nodiscard]] Result<LostSettings> find_lost_settings(const Checkpoint& checkpoint,
                                                      const Catalog& catalog);

}  // namespace shardwright

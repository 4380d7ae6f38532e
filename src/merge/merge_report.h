// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <vector>

#include "merge/merge_parts.h"

namespace shardwright {

/// Takes tensors out that a part before gives too, and says which.
[[nodiscard]] std::vector<MergeFinding> drop_doubled(const std::vector<OpenedPart>& parts,
                                                     std::vector<PlacedTensor>& tensors);

/// Adds the output head where the language model alone does not store one, because its own config
/// says that its embedding is the head, while the whole model's says that they are two. Says so.
/// Error: kJsonCorrupt.
[[nodiscard]] Result<std::vector<MergeFinding>> add_tied_heads(const std::vector<OpenedPart>& parts,
                                                               const WholeModel& whole,
                                                               const FamilyChoice& choice,
                                                               NamedTensors& named);

/// Tensors that are missing, that nobody knows or that have other shapes than the config says, and
/// sizes that don't meet. `without`: parts that may be missing. Makes the report where naming did
/// not. Errors: those of report_fit.
[[nodiscard]] Result<std::vector<MergeFinding>> find_misfits(const std::vector<OpenedPart>& parts,
                                                             const WholeModel& whole,
                                                             std::span<const std::string> without,
                                                             NamedTensors& named);

/// Settings in which a part's own config.json differs from what the whole model's says of it, and
/// parts of other floating point types. Error: kJsonCorrupt.
[[nodiscard]] Result<std::vector<MergeFinding>> compare_parts(const std::vector<OpenedPart>& parts,
                                                              const WholeModel& whole);

}  // namespace shardwright

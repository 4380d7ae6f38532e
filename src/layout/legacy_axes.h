// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "layout/rank_folder.h"
#include "shardwright/error.h"
#include "shardwright/parallel.h"

namespace shardwright {

/// What is known of the sizes of a legacy checkpoint before its tensors are put together.
struct LegacyAxesEvidence {
  /// The numbers of every folder that holds a model, all of one length.
  std::vector<std::vector<std::int64_t>> folders;
  /// From the arguments that the run saved; absent where they say nothing.
  std::optional<std::int64_t> tensor, pipeline, expert, expert_tensor;
  /// Whether a folder whose second number is 0 has the norm behind the last layer. With pipeline
  /// stages only the last one has it; ranks of experts all do. Absent: no second number.
  std::optional<bool> first_has_final_norm;
  std::int64_t virtual_stages = 1;
};

/// What the numbers in a legacy checkpoint's folder names mean.
struct LegacyAxes {
  ParallelConfig config;
  std::vector<LegacyRank> ranks;  ///< of LegacyAxesEvidence::folders
};

/// Settles it: a second number is a pipeline or an expert rank as the contents show; where the
/// saved arguments contradict that, it is an error and not a choice. Sizes are those of the names,
/// or larger ones that the arguments tell (folders may be missing). Errors: kLegacyLayout,
/// kNotDivisible (see legacy_grid).
[[nodiscard]] Result<LegacyAxes> settle_legacy_axes(const LegacyAxesEvidence& evidence);

}  // namespace shardwright

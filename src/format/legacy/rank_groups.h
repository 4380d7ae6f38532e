// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "format/legacy/legacy_ranks.h"
#include "shardwright/checkpoint.h"

namespace shardwright {

/// The common state of the first rank's file with the parameter groups of all ranks': a stage
/// without experts has none of theirs. `step` as in LegacyStateParts. Errors: kOptimizerMismatch
/// where ranks disagree about a group, the step or the scheduler, kStateUnreadable.
[[nodiscard]] Result<std::string> join_rank_groups(const std::string& common_state,
                                                   const Checkpoint& checkpoint,
                                                   const LegacyRanks& ranks,
                                                   std::optional<std::int64_t> step);

}  // namespace shardwright

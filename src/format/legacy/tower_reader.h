// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "format/legacy/legacy_ranks.h"
#include "layout/tower_evidence.h"

namespace shardwright {

/// What the ranks' files show of how many tensor ranks share out each tower: names, shapes, and a
/// few blocks of some weights. One of each tensor rank's files is asked. Errors: of reading.
[[nodiscard]] Result<std::vector<TowerEvidence>> read_tower_evidence(
    const std::vector<LegacyRankFile>& ranks, const LegacyAxes& axes, SourceFiles& files);

/// The same of the experts' weights, as if they were a tower: how many tensor ranks share them out.
[[nodiscard]] Result<std::vector<TowerEvidence>> read_expert_evidence(
    const std::vector<LegacyRankFile>& ranks, const LegacyAxes& axes, SourceFiles& files);

}  // namespace shardwright

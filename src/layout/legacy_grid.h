// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "layout/encoder_stages.h"
#include "layout/rank_folder.h"
#include "shardwright/error.h"

namespace shardwright {

/// The folders of a legacy checkpoint of these sizes, ordered by pipeline, tensor and expert rank:
/// all that some rank of a Megatron run asks for. With fewer tensor ranks for experts than for the
/// rest this is not the product of the axes but those pairs (r mod TP, r div ETP mod EP) that a
/// rank r has. Errors: kNotDivisible where experts' tensor ranks are not told apart by the names
/// (ETP does not divide TP): Megatron's ranks overwrite each other's files there.
/// `config.pipeline` counts the encoders' stages too.
/// Source: RankGenerator in megatron/core/parallel_state.py, save_checkpoint.
[[nodiscard]] Result<std::vector<LegacyRank>> legacy_grid(const ParallelConfig& config,
                                                          const EncoderStages& encoders = {});

/// Whether a run may have had that many ranks: what a file claims beyond it is not believed.
[[nodiscard]] bool is_believable_grid(const ParallelConfig& config);

/// The most ranks that an axis of a run may have.
inline constexpr std::int64_t kMostRanksOfAnAxis = 65'536;

}  // namespace shardwright

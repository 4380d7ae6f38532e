// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "layout/encoder_stages.h"
#include "layout/rank_folder.h"
#include "shardwright/error.h"

namespace shardwright {

/// How the folders that are there compare with those that a run of these sizes has. Never compared
/// with the product of the axes: with ETP below TP most of its names belong to no rank.
struct LegacyCoverage {
  std::size_t asked = 0;                   ///< names of a decoder's stage that some rank reads
  std::size_t written = 0;                 ///< names that Megatron writes today
  std::vector<LegacyRank> missing;         ///< written today and not there
  std::vector<std::string> unexpected;     ///< there, and read by no rank
  std::vector<std::int64_t> lost_tensors;  ///< dense shards that no folder holds, by tensor rank
  bool is_complete = false;    ///< every dense shard and every expert shard is in some folder
  bool by_old_writer = false;  ///< what is missing is what Megatron before core 0.19 left out
  std::vector<std::string> unwritten;  ///< asked for on reload, written by nobody and not there
};

/// Sizes of experts' tensor parallelism by the folders alone.
struct ExpertTensorFit {
  std::vector<std::int64_t> fitting;  ///< whose grid is just what is there
  std::int64_t nearest = 1;           ///< where nothing fits, the one that least is wrong with
};

/// Of a run with `config`'s other sizes, and these stages among its pipeline's. Names tell it only
/// where the grid is no other size's.
[[nodiscard]] ExpertTensorFit fit_expert_tensor(const std::set<std::string>& names,
                                                ParallelConfig config, RankNaming naming,
                                                const EncoderStages& encoders = {});

/// Error: kNotDivisible, see legacy_grid().
[[nodiscard]] Result<LegacyCoverage> legacy_coverage(const std::set<std::string>& names,
                                                     const ParallelConfig& config,
                                                     RankNaming naming,
                                                     const EncoderStages& encoders = {});

}  // namespace shardwright

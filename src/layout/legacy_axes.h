// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "layout/encoder_stages.h"
#include "layout/legacy_evidence.h"
#include "layout/rank_folder.h"
#include "shardwright/error.h"
#include "shardwright/parallel.h"

namespace shardwright {

/// What is known of the sizes of a legacy checkpoint before its tensors are put together.
struct LegacyAxesEvidence {
  /// The numbers of every folder that holds a model, all of one length.
  std::vector<std::vector<std::int64_t>> folders;
  RecordedRun run;                  ///< what the arguments of the first of them say
  std::vector<RankSample> samples;  ///< what each folder's file holds, in the same order
  std::int64_t virtual_stages = 1;
};

/// What the numbers in a legacy checkpoint's folder names mean.
struct LegacyAxes {
  ParallelConfig config;
  std::vector<LegacyRank> ranks;  ///< of LegacyAxesEvidence::folders
  EncoderStages encoders = {};    ///< among the stages of config.pipeline
  /// Neither the run's arguments nor the folders tell config.expert_tensor, which is TP's.
  bool is_expert_tensor_open = false;

  void set_expert_tensor(std::int64_t size);
};

/// Settles it: what a second number is, decide_second_coordinate() says, as for a diagnosis; where
/// the saved arguments contradict the contents or nothing tells, that is an error and not a choice.
/// A number that only tells copies apart (data-parallel ranks) counts as an expert rank of a model
/// without experts, whose ranks hold replicas. Sizes are those of the names,
/// or larger ones that the arguments tell (folders may be missing). Experts' tensor size is the
/// recorded one, without arguments the one whose folders these are. Errors: kLegacyLayout,
/// kNotDivisible (see legacy_grid).
[[nodiscard]] Result<LegacyAxes> settle_legacy_axes(const LegacyAxesEvidence& evidence);

}  // namespace shardwright

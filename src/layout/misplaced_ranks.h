// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <vector>

#include "layout/legacy_axes.h"
#include "layout/rank_folder.h"
#include "layout/second_coordinate.h"
#include "shardwright/diagnose.h"

namespace shardwright {

/// A file of the legacy format that lies in another rank's folder, or is of another save.
struct MisplacedRank {
  std::string folder;
  Phrase says;  ///< what the file says of itself, as half a sentence
  bool is_of_another_save = false;
};

/// The files that are not of the ranks that their folders are named for, by what each of them says:
/// the rank that its arguments record, the embedding and the final norm that it holds or lacks, its
/// iteration and sizes. `samples` are parallel to `axes.ranks`. A converter is one process, so a
/// rank that all files record alike says nothing, and neither do ranks that contradict the files'
/// own contents.
/// Source: RankGenerator in megatron/core/parallel_state.py.
[[nodiscard]] std::vector<MisplacedRank> misplaced_ranks(const LegacyAxes& axes, RankNaming naming,
                                                         std::span<const PlacedSample> samples);

/// Whether the files' arguments say which ranks wrote them.
[[nodiscard]] bool record_ranks(const LegacyAxes& axes, std::span<const PlacedSample> samples);

}  // namespace shardwright

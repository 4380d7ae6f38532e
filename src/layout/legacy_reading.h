// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "layout/encoder_stages.h"
#include "layout/folder_groups.h"
#include "layout/rank_folder.h"
#include "layout/second_coordinate.h"
#include "shardwright/parallel.h"

namespace shardwright {

/// What the numbers of folder names are, in order.
enum class Coordinate : std::uint8_t { kTensor, kPipeline, kExpert, kData };

/// How a folder of the legacy format is read: everything that the findings are made from.
struct LegacyReading {
  FolderGroups groups;
  std::vector<PlacedSample> samples;
  RecordedRun run;  ///< of the newest sample
  std::vector<Coordinate> coordinates;
  RankNaming naming = RankNaming::kMegatron;
  AxisSizes sizes;         ///< the pipeline's counts the stages of encoders too
  EncoderStages encoders;  ///< among them
  bool has_experts = false;
  std::optional<std::int64_t> experts;        ///< of the whole model
  std::optional<std::int64_t> local_experts;  ///< of one shard
  Confidence confidence = Confidence::kAmbiguous;
  Phrase reason;
  std::vector<Phrase> evidence;
  std::optional<ReplicaQuestion> question;
  std::int64_t assumed_expert_tensor = 1;  ///< where sizes has none: fits the folders best
  bool contradicts_arguments = false;
  bool has_optimizer_ranks = false;  ///< folders of an optimizer with a data-parallel number

  [[nodiscard]] std::set<std::string> model_names() const;
  /// The place of a coordinate in the names.
  [[nodiscard]] std::optional<std::size_t> place_of(Coordinate coordinate) const;
  /// Sizes for the grid of folders; nullopt where one is unknown or beyond any real run.
  [[nodiscard]] std::optional<ParallelConfig> config() const;
};

/// `mp_rank_{tp:02d}_{ep:03d}`.
[[nodiscard]] std::string pattern_of(const std::vector<Coordinate>& coordinates);
[[nodiscard]] std::string_view short_name(Coordinate coordinate);

/// Reads the evidence. REQUIRES: folders that hold a model, all with equally many numbers.
[[nodiscard]] LegacyReading read_legacy_layout(const LegacyEvidence& evidence, FolderGroups groups);

}  // namespace shardwright

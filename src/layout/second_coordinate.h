// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "layout/legacy_evidence.h"
#include "layout/shard_contents.h"

namespace shardwright {

/// A sample with the numbers of its folder's name.
struct PlacedSample {
  const RankSample* sample = nullptr;
  std::vector<std::int64_t> numbers;
  ShardContents contents;
};

enum class SecondCoordinate : std::uint8_t { kUnknown, kPipeline, kExpert, kData };

struct CoordinateInput {
  RecordedRun run;
  std::span<const PlacedSample> samples;
  std::span<const std::vector<std::int64_t>> names;  ///< the numbers of every folder's name
  AxisSizes believed;
  std::optional<ReplicaVerdict> verdict;
};

struct CoordinateDecision {
  SecondCoordinate meaning = SecondCoordinate::kUnknown;
  Confidence confidence = Confidence::kAmbiguous;
  Phrase reason;
  std::vector<Phrase> evidence;
  bool contradicts_arguments = false;
  std::optional<ReplicaQuestion> question;  ///< what to compare where nothing else decides
};

/// What the second of two numbers is. Names cannot tell: pipeline and expert ranks are written the
/// same. In this order: contents that only one reading allows, recorded arguments, a comparison of
/// bytes, what the caller says.
[[nodiscard]] CoordinateDecision decide_second_coordinate(const CoordinateInput& input);

}  // namespace shardwright

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "format/detect.h"

namespace shardwright {

/// `hf (model.safetensors holds weights) and legacy (mp_rank_00 holds what one rank saved)`, with
/// the folders where they lie in several.
[[nodiscard]] std::string candidates_text(const std::vector<Candidate>& candidates);

/// `hf in a/b, dcp in c`, of the first few.
[[nodiscard]] std::string first_of_text(const std::vector<Candidate>& candidates);

/// `name one with --as FORMAT`, or what else tells them apart.
[[nodiscard]] std::string way_to_choose(const std::vector<Candidate>& candidates,
                                        const FormatChoice& choice);

/// ` --as legacy`: what a command needs behind the path of the candidate's folder to mean this one;
/// empty where it is the only one.
[[nodiscard]] std::string flag_of(const Candidate& candidate);

/// The one checkpoint that a detection found at `path`. Errors: kTrackerBroken, kTwoCheckpoints,
/// kUnsupportedFormat and kUnknownFormat with what is there instead.
[[nodiscard]] Result<Candidate> only_candidate(const Directory& directory, const std::string& path,
                                               Detection detection, const FormatChoice& choice);

/// Error: kUsage for an opened checkpoint that is not what was chosen.
[[nodiscard]] Status check_opened(const FormatChoice& choice, const SourceFormat& found,
                                  const Location& location);

}  // namespace shardwright

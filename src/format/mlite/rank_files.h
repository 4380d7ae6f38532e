// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "format/target_parts.h"
#include "shardwright/checkpoint.h"
#include "shardwright/convert_request.h"
#include "shardwright/storage.h"

namespace shardwright {

/// Whether MLite writes a file of this name for a rank, beside the entries: `optimizer_rank_3.pt`,
/// `rng_state_rank_00003.pt`.
[[nodiscard]] bool is_mlite_rank_file(const DirectoryEntry& entry);

/// Takes Checkpoint::rank_files along, byte for byte, to a target of as many ranks as wrote them:
/// they list states in the order of a rank's own parameters, without names, so that only a job of
/// the same layout may load them. To any other target they don't go, and a note says why and what
/// would take them. Error: kLossySource where a rank's optimizer file is missing, for that rank
/// would begin with an empty optimizer and say nothing.
[[nodiscard]] Status take_rank_files(const ConvertRequest& request, const Checkpoint& source,
                                     TargetParts& parts, std::vector<std::string>& notes);

/// Tells that they don't go along, and why.
void leave_rank_files(const Checkpoint& source, std::string_view why,
                      std::vector<std::string>& notes);

}  // namespace shardwright

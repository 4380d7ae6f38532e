// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "exec/piece_journal.h"
#include "exec/piece_list.h"
#include "shardwright/parts.h"

namespace shardwright {

/// The journal of a part in the hidden folder: `.shardwright-journal-3-of-8`.
[[nodiscard]] std::string part_journal_name(Part part);
/// The part whose journal has this name; nothing for other names.
[[nodiscard]] std::optional<Part> part_of_journal(std::string_view name);

/// Which pieces each of `count` parts does, by its number less one: neighbours, a share of the
/// bytes, every piece once.
using PartPieces = std::vector<std::vector<std::uint32_t>>;
[[nodiscard]] PartPieces pieces_of_parts(const PieceList& pieces, std::uint32_t count);

/// What the parts of a saved plan have finished, all of one count.
struct FinishedParts {
  PartPieces shares;        ///< of each part
  FinishedPieces finished;  ///< every piece

  [[nodiscard]] Part part(std::size_t index) const {
    return {static_cast<std::uint32_t>(index) + 1, static_cast<std::uint32_t>(shares.size())};
  }
};

/// Finds a count of parts of which each has told that it is done. `output`: for messages. Errors:
/// kPartsMissing, naming those that have not; kTargetExists, where one is at work now.
[[nodiscard]] Result<FinishedParts> find_finished_parts(const Directory& folder,
                                                        const std::string& path,
                                                        const PieceList& pieces,
                                                        const SavedPlan& plan);

/// What to say where a part can't be written or published because an earlier `publish` has made
/// the output: `error` in other words. Any other error as it is.
[[nodiscard]] Error told_of_publishing(const PreparedConversion& conversion, const SavedPlan& plan,
                                       Error error);

/// `parts 3/8 and 5/8 are missing; run them again ...`, or `part 3/8 is ...`. REQUIRES: not empty.
[[nodiscard]] std::unexpected<Error> parts_missing(const SavedPlan& plan,
                                                   const std::vector<Part>& parts,
                                                   std::string_view what);

}  // namespace shardwright

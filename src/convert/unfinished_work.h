// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "exec/finished_pieces.h"
#include "exec/piece_journal.h"
#include "exec/piece_list.h"
#include "shardwright/convert.h"

namespace shardwright {

/// What is to be done of a conversion, and what an earlier run of it left.
struct UnfinishedWork {
  JournalHead head;
  PieceList pieces;         ///< borrows the conversion's plan
  FinishedPieces finished;  ///< empty: everything is to be done
  std::string folder;       ///< the hidden one that holds it; empty: none
  std::uint64_t resumed_bytes = 0;
  std::uint64_t journal_bytes = 0;  ///< of whole records
  bool is_journalled = false;
};

using BeforeReadingBack = std::function<void(const std::string& folder, std::uint64_t piece_bytes)>;

/// Finds out what to do: everything, or with ConvertRequest::resume what an unfinished output
/// beside the target lacks; what it has is read and compared with its journal. The conversion must
/// outlive the result. `piece_bytes`: of the pieces of what is begun anew, see PieceList.
/// `digests` (may be null) is told of what is taken over, and `before_reading` (may be empty) in
/// which folder that lies and how large its pieces are. Error:
/// kCannotResume, where all that was left is of another conversion, of a source that changed since
/// or of another version of this program.
[[nodiscard]] Result<UnfinishedWork> begin_or_resume(const PreparedConversion& conversion,
                                                     std::uint64_t piece_bytes,
                                                     const RunOptions& options,
                                                     PayloadDigests* digests,
                                                     const BeforeReadingBack& before_reading = {});

/// What lies in the place of a file of an unfinished output in `folder` is that file, as far as it
/// was written. Error: kCannotResume, with what is there instead.
[[nodiscard]] Status check_unfinished_files(const Plan& plan, const std::string& folder);

/// Does its share where another process of `options.sharing` takes up what lies in `folder`.
[[nodiscard]] Status help_reading_back(const PreparedConversion& conversion,
                                       const std::string& folder, std::uint64_t piece_bytes,
                                       const RunOptions& options, PayloadDigests* digests);

/// The journal of a run in the hidden folder `partial`; none for work that is done in one go.
[[nodiscard]] Result<std::unique_ptr<PieceJournal>> open_journal(const UnfinishedWork& work,
                                                                 const std::string& partial);

}  // namespace shardwright

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
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

/// Finds out what to do: everything, or with ConvertRequest::resume what an unfinished output
/// beside the target lacks; what it has is read and compared with its journal. The conversion must
/// outlive the result. `piece_bytes`: of the pieces of what is begun anew, see PieceList.
/// `digests` (may be null) is told of what is taken over. Error:
/// kCannotResume, where all that was left is of another conversion, of a source that changed since
/// or of another version of this program.
[[nodiscard]] Result<UnfinishedWork> begin_or_resume(const PreparedConversion& conversion,
                                                     std::uint64_t piece_bytes,
                                                     const RunOptions& options,
                                                     PayloadDigests* digests);

/// The journal of a run in the hidden folder `partial`; none for work that is done in one go.
[[nodiscard]] Result<std::unique_ptr<PieceJournal>> open_journal(const UnfinishedWork& work,
                                                                 const std::string& partial);

/// To be called before the folder is published.
[[nodiscard]] Status remove_journal(const std::string& partial);

}  // namespace shardwright

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "exec/finished_pieces.h"
#include "exec/piece_list.h"
#include "io/append_file.h"

namespace shardwright {

/// The name of a journal in the folder of an unfinished target. It is gone when that is published.
inline constexpr std::string_view kJournalName = ".shardwright-journal";

/// What a journal is of. Who goes on with one must mean the same by a piece and write the same.
struct JournalHead {
  std::string version;  ///< of the program
  std::string source;   ///< see source_fingerprint()
  std::string plan;     ///< see fingerprint_of()
  std::uint64_t piece_bytes = 0;

  friend bool operator==(const JournalHead&, const JournalHead&) = default;
};

/// The pieces of an unfinished target that are written, as a file beside its data, see
/// docs/formats/journal.md. It promises nothing: what it says of a piece is compared with the data
/// before it is believed (check_finished), so it costs no fsync. Safe for concurrent use.
class PieceJournal {
 public:
  /// Begins a journal at `path`. Error: those of writing it.
  [[nodiscard]] static Result<std::unique_ptr<PieceJournal>> begin(const std::string& path,
                                                                   const JournalHead& head);
  /// Goes on with a journal: what follows its last whole record is cut off. Error: as begin.
  [[nodiscard]] static Result<std::unique_ptr<PieceJournal>> resume(const std::string& path,
                                                                    std::uint64_t whole_bytes);

  /// Opens the journal of a part of a conversion, or makes it, and keeps other processes from it as
  /// long as it lives. Its contents are the caller's to read, and to keep or not (restart, cut).
  /// Error: kTargetExists, where another process has it.
  [[nodiscard]] static Result<std::unique_ptr<PieceJournal>> hold(const std::string& path);
  /// Makes it a new one.
  [[nodiscard]] Status restart(const JournalHead& head) const;
  /// Cuts off what follows its last whole record.
  [[nodiscard]] Status cut(std::uint64_t whole_bytes) const;

  [[nodiscard]] Status add(std::uint32_t piece, const PieceCrcs& crcs) const;
  /// Says durably that no more pieces will come. REQUIRES: what they wrote is durable.
  [[nodiscard]] Status end() const;

 private:
  explicit PieceJournal(std::unique_ptr<AppendFile> file) : file_(std::move(file)) {}

  std::unique_ptr<AppendFile> file_;
};

/// A journal as it was found.
struct ReadJournal {
  JournalHead head;
  std::string records;  ///< behind the head, undecoded
  std::uint64_t head_bytes = 0;
};

/// What the whole records of a journal tell, and where the last of them ends.
struct JournalledPieces {
  FinishedPieces finished;
  std::uint64_t whole_bytes = 0;  ///< up to where the last record of a piece ends
  bool has_end = false;           ///< see PieceJournal::end()
};

/// Error: kNotFound where there is none; kCannotResume for what is no journal.
[[nodiscard]] Result<ReadJournal> read_journal(const Directory& folder,
                                               std::string_view name = kJournalName);

/// The records that are whole and of these pieces; a torn end is left out. Records take as much
/// memory as they have bytes.
[[nodiscard]] JournalledPieces journalled_pieces(const ReadJournal& journal,
                                                 const PieceList& pieces);

}  // namespace shardwright

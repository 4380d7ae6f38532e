// SPDX-License-Identifier: Apache-2.0
#include "convert/unfinished_work.h"

#include <filesystem>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/fail.h"
#include "base/text.h"
#include "convert/conversion_output.h"
#include "convert/set_aside_journals.h"
#include "exec/plan_fingerprint.h"
#include "io/publish.h"

namespace shardwright {
namespace {

std::string journal_path(const std::string& partial) {
  return partial + "/" + std::string(kJournalName);
}

// What keeps a run from going on with a journal; nothing where it can.
std::optional<std::string_view> difference(const JournalHead& found, const JournalHead& now) {
  if (found.version != now.version) return "another version of this program wrote it";
  if (found.plan != now.plan) return "it is of another conversion: flags or source differ";
  if (found.source != now.source)
    return "files of the source changed since, or are others of the same names";
  return std::nullopt;
}

struct Candidate {
  std::string folder;
  ReadJournal journal;
};

// The unfinished outputs beside a target that have a journal.
std::vector<Candidate> candidates(const std::string& output) {
  std::vector<Candidate> found;
  for (std::string& folder : stale_partials(output)) {
    const auto directory = open_local_directory(folder);
    if (!directory) continue;
    auto journal = read_journal(**directory);
    if (journal) found.push_back({std::move(folder), *std::move(journal)});
  }
  return found;
}

// Of what is no unfinished file of at most `most` bytes; nothing for one, or where nothing is. Only
// a file with one name is this conversion's alone.
std::string other_thing(const std::string& path, std::uint64_t most) {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::file_status status = fs::symlink_status(path, error);
  if (!fs::exists(status)) return {};
  if (fs::is_symlink(status)) return translated("a link");
  if (!fs::is_regular_file(status)) return translated("something that is no file");
  if (fs::hard_link_count(path, error) > 1 && !error) return translated("a file of several names");
  const std::uintmax_t size = fs::file_size(path, error);
  return error || size <= most ? std::string() : translated("a file of {} bytes", size);
}

Status take_up(const Candidate& candidate, const PreparedConversion& conversion,
               const RunOptions& options, PayloadDigests* digests, UnfinishedWork& work) {
  SW_TRY(check_unfinished_files(conversion.plan, candidate.folder));
  const auto folder = SW_TRY(open_local_directory(candidate.folder));
  JournalledPieces journalled = journalled_pieces(candidate.journal, work.pieces);
  const Workers workers = begin_reading_back(conversion, options, work.pieces, journalled.finished);
  work.resumed_bytes = SW_TRY(
      check_finished(conversion.plan, work.pieces, *folder, workers, journalled.finished, digests));
  work.finished = std::move(journalled.finished);
  work.journal_bytes = journalled.whole_bytes;
  work.folder = candidate.folder;
  return {};
}

}  // namespace

Result<UnfinishedWork> begin_or_resume(const PreparedConversion& conversion,
                                       std::uint64_t piece_bytes, const RunOptions& options,
                                       PayloadDigests* digests,
                                       const BeforeReadingBack& before_reading) {
  const Plan& plan = conversion.plan;
  UnfinishedWork work{{}, PieceList(plan, piece_bytes), {}, {}, 0, 0, false};
  work.head.piece_bytes = piece_bytes;
  work.is_journalled = conversion.request.resume || work.pieces.size() > 1;
  if (!work.is_journalled) return work;
  SourceSummary source =
      SW_TRY(summary_of_source(plan, *conversion.source.files, SourceIdentity::kFiles));
  work.head = {SHARDWRIGHT_VERSION, std::move(source.fingerprint), fingerprint_of(plan),
               piece_bytes};
  if (!conversion.request.resume) return work;

  return_set_aside(conversion.request.output);
  const std::vector<Candidate> left = candidates(conversion.request.output);
  for (const Candidate& candidate : left) {
    const JournalHead& found = candidate.journal.head;
    if (difference(found, work.head)) continue;
    if (!source.untold.empty()) {
      return fail(Code::kCannotResume,
                  "{}: cannot go on with this unfinished output: the server tells neither ETag nor "
                  "date of {}, so nobody can know whether it is the same file; remove the output "
                  "to begin anew, from a copy on a disk if it must be gone on with",
                  candidate.folder, printable(source.untold));
    }
    work.head.piece_bytes = found.piece_bytes;
    work.pieces = PieceList(plan, found.piece_bytes);
    if (before_reading) before_reading(candidate.folder, found.piece_bytes);
    SW_TRY(take_up(candidate, conversion, options, digests, work));
    return work;
  }
  if (left.empty()) return work;
  return fail(Code::kCannotResume,
              "{}: cannot go on with this unfinished output: {}; remove it to begin anew",
              left.back().folder, *difference(left.back().journal.head, work.head));
}

Status check_unfinished_files(const Plan& plan, const std::string& folder) {
  for (std::size_t i = 0; i < plan.target.files.size(); ++i) {
    const std::string path = folder + "/" + plan.target.files[i];
    const std::string found = other_thing(path, plan.file_sizes[i]);
    if (found.empty()) continue;
    return fail(Code::kCannotResume,
                "{}: found {}, expected an unfinished file of at most {} bytes, as this conversion "
                "made it; remove that, and the same command goes on",
                path, found, plan.file_sizes[i]);
  }
  return {};
}

Status help_reading_back(const PreparedConversion& conversion, const std::string& folder,
                         std::uint64_t piece_bytes, const RunOptions& options,
                         PayloadDigests* digests) {
  const PieceList pieces(conversion.plan, piece_bytes);
  const auto directory = SW_TRY(open_local_directory(folder));
  FinishedPieces finished = journalled_pieces(SW_TRY(read_journal(*directory)), pieces).finished;
  const Workers workers = begin_reading_back(conversion, options, pieces, finished);
  SW_TRY(check_finished(conversion.plan, pieces, *directory, workers, finished, digests));
  return {};
}

Result<std::unique_ptr<PieceJournal>> open_journal(const UnfinishedWork& work,
                                                   const std::string& partial) {
  if (!work.is_journalled) return std::unique_ptr<PieceJournal>();
  if (work.folder.empty()) return PieceJournal::begin(journal_path(partial), work.head);
  return PieceJournal::resume(journal_path(partial), work.journal_bytes);
}

}  // namespace shardwright

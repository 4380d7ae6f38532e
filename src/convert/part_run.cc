// SPDX-License-Identifier: Apache-2.0
#include <set>
#include <utility>

#include "base/fail.h"
#include "convert/conversion_output.h"
#include "convert/part_journals.h"
#include "convert/saved_plan.h"
#include "convert/set_aside_journals.h"
#include "convert/unfinished_work.h"
#include "exec/payload_place.h"
#include "shardwright/parts.h"

namespace shardwright {
namespace {

// What a part does and what of it an earlier run did.
struct PartWork {
  PieceList pieces;                ///< of the whole conversion
  std::vector<std::uint32_t> own;  ///< pieces of this part
  FinishedPieces finished;
  std::uint64_t own_bytes = 0;
  std::uint64_t resumed_bytes = 0;
};

// The part's own pieces, one after another.
class OwnPieces final : public PieceQueue {
 public:
  OwnPieces(const PartWork& work, const PieceJournal& journal) : work_(work), journal_(journal) {}

  std::optional<std::uint32_t> take() override {
    while (next_ < work_.own.size() && work_.finished[work_.own[next_]]) ++next_;
    if (next_ == work_.own.size()) return std::nullopt;
    return work_.own[next_++];
  }
  Status finish(std::uint32_t piece, PieceCrcs crcs) override { return journal_.add(piece, crcs); }

 private:
  const PartWork& work_;
  const PieceJournal& journal_;
  std::size_t next_ = 0;
};

// What an earlier run of the part wrote is read back. A journal that says nothing is begun anew.
Status take_up_part(const PreparedConversion& conversion, const Directory& folder,
                    const SavedPlan& plan, Part part, const PieceJournal& journal,
                    const RunOptions& options, PartWork& work) {
  work.finished.assign(work.pieces.size(), std::nullopt);
  const auto found = read_journal(folder, part_journal_name(part));
  if (!found || !(found->head == head_of(plan))) return journal.restart(head_of(plan));
  JournalledPieces journalled = journalled_pieces(*found, work.pieces);
  // With its end goes that it is done, until it is done again.
  SW_TRY(journal.cut(journalled.whole_bytes));
  for (const std::uint32_t piece : work.own) {
    work.finished[piece] = std::move(journalled.finished[piece]);
  }
  const Workers workers = begin_reading_back(conversion, options, work.pieces, work.finished);
  work.resumed_bytes =
      SW_TRY(check_finished(conversion.plan, work.pieces, folder, workers, work.finished));
  return {};
}

Result<std::uint64_t> count_files(const Plan& plan, const PartWork& work) {
  std::set<std::uint32_t> files;
  for (const std::uint32_t piece : work.own) {
    if (work.finished[piece]) continue;
    for (const PieceRun& run : work.pieces.runs(piece)) {
      const PayloadPlace place = SW_TRY(place_of(plan, run));
      files.insert(place.file);
    }
  }
  return files.size();
}

// Writes what is not finished and makes it durable.
Status write_part(const PreparedConversion& conversion, Publication& publication,
                  const PartWork& work, const PieceJournal& journal,
                  const ExecuteOptions& execution) {
  const Plan& plan = conversion.plan;
  SourceFiles& files = *conversion.source.files;
  TargetFiles target(plan, publication.directory());
  // Space for all of it; who comes at the same time makes the files that are not there yet.
  if (publication.is_new()) SW_TRY(target.open_all());
  const TargetFraming framing(plan, target);
  OwnPieces queue(work, journal);
  SW_TRY(execute_pieces(plan, work.pieces, files, target, framing, queue, execution));
  SW_TRY(target.sync(execution.threads));
  SW_TRY(files.check_unchanged());
  SW_TRY(publication.sync_folders());
  return journal.end();
}

Result<ConvertReport> run_in(Publication& publication, const PreparedConversion& conversion,
                             const SavedPlan& plan, Part part, const RunOptions& options) {
  ExecuteOptions execution = SW_TRY(execute_options(conversion, options));
  const auto journal =
      SW_TRY(PieceJournal::hold(publication.partial_path() + "/" + part_journal_name(part)));
  PartWork work{PieceList(conversion.plan, plan.piece_bytes), {}, {}};
  work.own = std::move(pieces_of_parts(work.pieces, part.count)[part.number - 1]);
  for (const std::uint32_t piece : work.own) work.own_bytes += work.pieces.bytes(piece);
  SW_TRY(check_unfinished_files(conversion.plan, publication.partial_path()));
  SW_TRY(take_up_part(conversion, publication.directory(), plan, part, *journal, options, work));
  const std::uint64_t to_write = work.own_bytes - work.resumed_bytes;
  begin_phase(options, RunPhase::kCopy, to_write);
  if (options.on_progress) {
    execution.on_progress = [&](const ExecuteProgress& progress) {
      options.on_progress({work.resumed_bytes + progress.payload_bytes_done, work.own_bytes});
    };
  }
  const std::uint64_t files_written = SW_TRY(count_files(conversion.plan, work));
  SW_TRY(write_part(conversion, publication, work, *journal, execution));
  const SourceFiles& files = *conversion.source.files;
  return ConvertReport{conversion.request.output,
                       files.bytes_read(),
                       to_write,
                       work.resumed_bytes,
                       files.opens(),
                       files_written,
                       {}};
}

}  // namespace

Result<ConvertReport> run_part(const PreparedConversion& conversion, const SavedPlan& plan,
                               Part part, const RunOptions& options) {
  if (part.number < 1 || part.number > part.count || part.count > kMostParts) {
    return fail(Code::kUsage, "found part {}, expected 1/N to N/N", part_text(part));
  }
  SW_TRY(check_saved_plan(conversion, plan));
  std::vector<std::string> notes;
  if (part.number == 1) notes = SW_TRY(compare_source(conversion, options));
  return_set_aside(conversion.request.output);
  std::vector<std::string> leftovers;
  PublishOptions publish = publish_options(conversion, leftovers);
  publish.parts_id = parts_id_of(plan);
  publish.is_part = true;
  publish.keeps_unfinished = true;
  Result<std::unique_ptr<Publication>> begun = Publication::begin(std::move(publish));
  if (!begun) {
    return std::unexpected(told_of_publishing(conversion, plan, std::move(begun).error()));
  }
  const std::unique_ptr<Publication> publication = *std::move(begun);
  Result<ConvertReport> report = run_in(*publication, conversion, plan, part, options);
  if (report) report->notes = std::move(notes);
  const bool is_told = !report && (report.error().code == Code::kTargetExists ||
                                   report.error().code == Code::kCannotResume);
  if (report || is_told) return report;
  Error error = std::move(report).error();
  error.message += translated("; what is written is kept in {}: the same command goes on",
                              publication->partial_path());
  return std::unexpected(std::move(error));
}

}  // namespace shardwright

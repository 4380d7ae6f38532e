// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "convert/conversion_output.h"
#include "convert/coworkers.h"
#include "convert/remote_run.h"
#include "convert/unfinished_work.h"
#include "exec/execute.h"
#include "io/publish.h"
#include "remote/remote_output.h"

namespace shardwright {
namespace {

// The hidden folder that the output is made in.
Result<std::unique_ptr<Publication>> begin_output(const PreparedConversion& conversion,
                                                  const RunOptions& options,
                                                  const UnfinishedWork& work,
                                                  const Coworkers& coworkers,
                                                  std::vector<std::string>& leftovers) {
  PublishOptions publish = publish_options(conversion, leftovers);
  publish.unfinished = work.folder;
  publish.keeps_unfinished = conversion.request.resume;
  publish.may_appear = [&options] { return check_not_cancelled(options); };
  coworkers.ask_of(publish);
  // Of what goes on the disk has most already.
  if (!work.folder.empty()) publish.bytes_needed = 0;
  return Publication::begin(std::move(publish));
}

// Whose progress is that of all who work on it.
ExecuteOptions with_progress(ExecuteOptions execution, const RunOptions& options,
                             std::uint64_t resumed_bytes, const Coworkers& coworkers) {
  if (!options.on_progress) return execution;
  execution.on_progress = [&options, &coworkers, resumed_bytes](const ExecuteProgress& progress) {
    options.on_progress({resumed_bytes + progress.payload_bytes_done + coworkers.bytes_done(),
                         progress.payload_bytes_total});
  };
  return execution;
}

WholeRun journalled(FinishedPieces finished, const PieceJournal* journal, Coworkers& coworkers) {
  WholeRun run{std::move(finished), {}, coworkers.sharing()};
  if (journal != nullptr) {
    run.on_finished = [journal](std::uint32_t piece, const PieceCrcs& crcs) {
      return journal->add(piece, crcs);
    };
  }
  return run;
}

}  // namespace

Result<ConvertReport> run_conversion(const PreparedConversion& conversion,
                                     const RunOptions& options) {
  Coworkers nobody;
  return run_conversion(conversion, options, nobody);
}

Result<ConvertReport> run_conversion(const PreparedConversion& conversion,
                                     const RunOptions& options, Coworkers& coworkers) {
  const std::string& output = conversion.request.output;
  if (is_remote_output(output)) {
    SW_TRY(coworkers.check_server(output));
    return run_to_server(conversion, options);
  }
  SW_TRY(coworkers.agree());
  std::vector<std::string> notes = SW_TRY(compare_source(conversion, options));

  ExecuteOptions execution = SW_TRY(execute_options(conversion, options));
  const std::unique_ptr<PayloadDigests> digests = digests_for(conversion);
  execution.digests = digests.get();
  coworkers.gather(digests.get());
  const PlanCost cost = cost_of(conversion.plan);
  const std::uint64_t piece_bytes =
      coworkers.piece_bytes(default_piece_bytes(cost.bytes_written), cost.bytes_written);
  UnfinishedWork work = SW_TRY(begin_or_resume(
      conversion, piece_bytes, options, digests.get(),
      [&](const std::string& folder, std::uint64_t bytes) { coworkers.read_back(folder, bytes); }));
  std::vector<std::string> leftovers;
  const std::unique_ptr<Publication> publication =
      SW_TRY(begin_output(conversion, options, work, coworkers, leftovers));

  begin_phase(options, RunPhase::kCopy, cost.payload_bytes_read);
  SW_TRY(coworkers.set_output(*publication, work.head.piece_bytes));
  const std::unique_ptr<PieceJournal> journal =
      SW_TRY(open_journal(work, publication->partial_path()));
  SourceFiles& files = *conversion.source.files;
  SW_TRY(execute(conversion.plan, work.pieces, files, publication->directory(),
                 journalled(std::move(work.finished), journal.get(), coworkers),
                 with_progress(std::move(execution), options, work.resumed_bytes, coworkers)));

  SW_TRY(publish_output(conversion, options, *publication, digests.get(),
                        [&] { return coworkers.let_go(); }));
  const Coworkers::Read by_others = coworkers.read();
  return ConvertReport{output,
                       files.bytes_read() + by_others.bytes,
                       cost.bytes_written - work.resumed_bytes,
                       work.resumed_bytes,
                       files.opens() + by_others.opens,
                       cost.target_files,
                       std::move(leftovers),
                       std::move(notes)};
}

}  // namespace shardwright

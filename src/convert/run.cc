// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/fail.h"
#include "base/text.h"
#include "convert/conversion_output.h"
#include "convert/piece_leader.h"
#include "convert/remote_run.h"
#include "convert/unfinished_work.h"
#include "exec/execute.h"
#include "io/publish.h"
#include "remote/remote_output.h"
#include "shardwright/convert.h"

namespace shardwright {

Result<ConvertReport> run_conversion(const PreparedConversion& conversion,
                                     const RunOptions& options) {
  return run_conversion(conversion, options, nullptr);
}

Result<ConvertReport> run_conversion(const PreparedConversion& conversion,
                                     const RunOptions& options, PieceLeader* leader) {
  const ConvertRequest& request = conversion.request;
  if (is_remote_output(request.output)) {
    if (leader == nullptr) return run_to_server(conversion, options);
    return fail(Code::kUsage,
                "{}: several ranks write to a folder that all of them see; choose a local path, or "
                "run it without ranks",
                printable(request.output));
  }
  SourceFiles& files = *conversion.source.files;
  if (leader != nullptr) SW_TRY(leader->agree());
  std::vector<std::string> notes = SW_TRY(compare_source(conversion, options));
  ExecuteOptions execution = SW_TRY(execute_options(conversion, options));
  const PlanCost cost = cost_of(conversion.plan);
  std::uint64_t piece_bytes = default_piece_bytes(cost.bytes_written);
  if (leader != nullptr) {
    piece_bytes = std::min(piece_bytes, leader->most_piece_bytes(cost.bytes_written));
  }
  const std::unique_ptr<PayloadDigests> digests = digests_for(conversion);
  execution.digests = digests.get();
  BeforeReadingBack before_reading;
  if (leader != nullptr) {
    leader->gather(digests.get());
    before_reading = [&](const std::string& folder, std::uint64_t bytes_of_piece) {
      leader->read_back(folder, bytes_of_piece);
    };
  }
  UnfinishedWork work =
      SW_TRY(begin_or_resume(conversion, piece_bytes, options, digests.get(), before_reading));
  std::vector<std::string> leftovers;
  PublishOptions publish = publish_options(conversion, leftovers);
  publish.unfinished = work.folder;
  publish.keeps_unfinished = request.resume;
  publish.may_appear = [&]() -> Status {
    return leader == nullptr ? check_not_cancelled(options) : leader->may_appear();
  };
  if (leader != nullptr) publish.may_stay = [&] { return leader->may_stay(); };
  // Of what goes on the disk has most already.
  if (!work.folder.empty()) publish.bytes_needed = 0;
  const std::unique_ptr<Publication> publication = SW_TRY(Publication::begin(std::move(publish)));

  if (options.on_progress) {
    execution.on_progress = [&](const ExecuteProgress& progress) {
      const std::uint64_t by_others = leader == nullptr ? 0 : leader->bytes_done_by_others();
      options.on_progress({work.resumed_bytes + progress.payload_bytes_done + by_others,
                           progress.payload_bytes_total});
    };
  }
  begin_phase(options, RunPhase::kCopy, cost.payload_bytes_read);
  if (leader != nullptr) {
    SW_TRY(leader->set_output(*publication, work.head.piece_bytes));
  }
  WholeRun run{std::move(work.finished), {}, leader};
  const std::unique_ptr<PieceJournal> journal =
      SW_TRY(open_journal(work, publication->partial_path()));
  if (journal != nullptr) {
    run.on_finished = [&](std::uint32_t piece, const PieceCrcs& crcs) {
      return journal->add(piece, crcs);
    };
  }
  SW_TRY(execute(conversion.plan, work.pieces, files, publication->directory(), std::move(run),
                 execution));
  const auto release_others = [&]() -> Status {
    if (leader == nullptr) return {};
    SW_TRY(leader->may_appear());  // or nothing could go on with what is left
    leader->release();
    return {};
  };
  SW_TRY(publish_output(conversion, options, *publication, digests.get(), release_others));
  const PieceLeader::Read by_others = leader == nullptr ? PieceLeader::Read{} : leader->read();
  return ConvertReport{request.output,
                       files.bytes_read() + by_others.bytes,
                       cost.bytes_written - work.resumed_bytes,
                       work.resumed_bytes,
                       files.opens() + by_others.opens,
                       cost.target_files,
                       std::move(leftovers),
                       std::move(notes)};
}

}  // namespace shardwright

// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/fail.h"
#include "convert/conversion_output.h"
#include "convert/part_journals.h"
#include "convert/saved_plan.h"
#include "convert/set_aside_journals.h"
#include "convert/unfinished_work.h"
#include "shardwright/parts.h"

namespace shardwright {
namespace {

// Reads all that the parts wrote, and names those of which something is not what it was.
Status check_written(const PreparedConversion& conversion, const SavedPlan& plan,
                     const PieceList& pieces, const Directory& folder, const RunOptions& options,
                     PayloadDigests* digests, FinishedParts& parts) {
  const Workers workers = begin_reading_back(conversion, options, pieces, parts.finished);
  SW_TRY(check_finished(conversion.plan, pieces, folder, workers, parts.finished, digests));
  std::vector<Part> damaged;
  for (std::size_t i = 0; i < parts.shares.size(); ++i) {
    const bool is_whole = std::ranges::all_of(
        parts.shares[i], [&](std::uint32_t piece) { return parts.finished[piece].has_value(); });
    if (!is_whole) damaged.push_back(parts.part(i));
  }
  if (damaged.empty()) return {};
  return parts_missing(plan, damaged, "not as it was written any more");
}

}  // namespace

Result<ConvertReport> publish_parts(const PreparedConversion& conversion, const SavedPlan& plan,
                                    const RunOptions& options) {
  SW_TRY(check_saved_plan(conversion, plan));
  ExecuteOptions execution = SW_TRY(execute_options(conversion, options));
  const std::unique_ptr<PayloadDigests> digests = digests_for(conversion);
  execution.digests = digests.get();
  return_set_aside(conversion.request.output);
  std::vector<std::string> leftovers;
  PublishOptions publish = publish_options(conversion, leftovers);
  publish.parts_id = parts_id_of(plan);
  publish.keeps_unfinished = true;
  publish.bytes_needed = 0;
  publish.may_appear = [&] { return check_not_cancelled(options); };
  Result<std::unique_ptr<Publication>> begun = Publication::begin(std::move(publish));
  if (!begun) {
    return std::unexpected(told_of_publishing(conversion, plan, std::move(begun).error()));
  }
  const std::unique_ptr<Publication> publication = *std::move(begun);
  Directory& folder = publication->directory();
  const std::string& path = publication->partial_path();
  const PieceList pieces(conversion.plan, plan.piece_bytes);
  SW_TRY(check_unfinished_files(conversion.plan, path));
  FinishedParts parts = SW_TRY(find_finished_parts(folder, path, pieces, plan));
  SW_TRY(check_written(conversion, plan, pieces, folder, options, digests.get(), parts));
  SourceFiles& files = *conversion.source.files;
  SW_TRY(execute(conversion.plan, pieces, files, folder, {std::move(parts.finished), {}, nullptr},
                 execution));
  SW_TRY(publish_output(conversion, options, *publication, digests.get()));
  const PlanCost cost = cost_of(conversion.plan);
  return ConvertReport{
      conversion.request.output, files.bytes_read(), cost.bytes_written - pieces.total_bytes(),
      pieces.total_bytes(),      files.opens(),      cost.target_files,
      std::move(leftovers)};
}

}  // namespace shardwright

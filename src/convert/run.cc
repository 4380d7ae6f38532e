// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/fail.h"
#include "compare/source_guards.h"
#include "convert/memory_budget.h"
#include "convert/replaced_files.h"
#include "exec/execute.h"
#include "exec/threads.h"
#include "io/publish.h"
#include "shardwright/convert.h"

namespace shardwright {
namespace {

// Borrows the names of the files that are written.
auto may_replace(const std::vector<std::string>& written) {
  return [&written](const std::string& target) -> Result<Replace> {
    const ReplacedOutput replaced = SW_TRY(find_replaced_files(target, written));
    return replaced.keeps_others ? Replace::kEntries : Replace::kWhole;
  };
}

}  // namespace

Result<ConvertReport> run_conversion(const PreparedConversion& conversion,
                                     const RunOptions& options) {
  const ConvertRequest& request = conversion.request;
  SourceFiles& files = *conversion.source.files;
  const auto begin = [&](RunPhase phase, std::uint64_t bytes) {
    if (options.on_phase) options.on_phase(phase, bytes);
  };
  Defects first;
  const std::uint64_t compared = conversion.replicas.bytes + conversion.master_weight_bytes;
  if (compared > 0) begin(RunPhase::kCompare, compared);
  SW_TRY(check_source(
      conversion.source, conversion.plan.source,
      {request.check_replicas, conversion.checks_master_weights, thread_count(request.threads)},
      first));
  const MemoryBudget budget = SW_TRY(budget_of(request, conversion.source, conversion.plan));
  const PlanCost cost = cost_of(conversion.plan);
  PublishOptions publish;
  publish.target = request.output;
  publish.sources = conversion.more_sources;
  publish.sources.push_back(request.input);
  publish.sources.push_back(conversion.source.location.path);
  publish.kept = request.map_files;
  for (const std::string& folder : {request.hf_config_dir, request.models_dir}) {
    if (!folder.empty()) publish.kept.push_back(folder);
  }
  publish.bytes_needed = cost.bytes_written;
  if (request.overwrite) publish.may_replace = may_replace(conversion.plan.target.files);
  std::vector<std::string> leftovers;
  publish.report_leftover = [&](const std::string& path) { leftovers.push_back(path); };
  const std::unique_ptr<Publication> publication = SW_TRY(Publication::begin(std::move(publish)));

  ExecuteOptions execution;
  execution.threads = budget.threads;
  execution.buffer_bytes = budget.buffer_bytes;
  execution.cancelled = options.cancelled;
  if (options.on_progress) {
    execution.on_progress = [&](const ExecuteProgress& progress) {
      options.on_progress({progress.payload_bytes_done, progress.payload_bytes_total});
    };
  }
  begin(RunPhase::kCopy, cost.payload_bytes_read);
  SW_TRY(execute(conversion.plan, files, publication->directory(), execution));
  // The last one who follows it may have stopped it.
  if (options.cancelled != nullptr && *options.cancelled) {
    return fail(Code::kCancelled, "stopped before the checkpoint was published");
  }
  begin(RunPhase::kPublish, 0);
  SW_TRY(files.check_unchanged());
  SW_TRY(publication->commit());
  return ConvertReport{request.output, files.bytes_read(), cost.bytes_written,
                       files.opens(),  cost.target_files,  std::move(leftovers)};
}

}  // namespace shardwright

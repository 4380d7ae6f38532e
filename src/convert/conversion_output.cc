// SPDX-License-Identifier: Apache-2.0
#include "convert/conversion_output.h"

#include <optional>

#include "base/fail.h"
#include "compare/integrity_file.h"
#include "compare/source_guards.h"
#include "convert/memory_budget.h"
#include "convert/replaced_files.h"
#include "exec/threads.h"
#include "remote/open_path.h"

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

void begin_phase(const RunOptions& options, RunPhase phase, std::uint64_t bytes) {
  if (options.on_phase) options.on_phase(phase, bytes);
}

Status compare_source(const PreparedConversion& conversion, const RunOptions& options) {
  const ConvertRequest& request = conversion.request;
  Defects first;
  const std::uint64_t compared = conversion.replicas.bytes + conversion.master_weight_bytes;
  if (compared > 0) begin_phase(options, RunPhase::kCompare, compared);
  Workers workers;
  workers.threads = thread_count(request.threads);
  workers.sharing = options.sharing;
  workers.cancelled = options.cancelled;
  if (options.on_progress && compared > 0) {
    workers.on_progress = [&](std::uint64_t bytes) { options.on_progress({bytes, compared}); };
  }
  SW_TRY(check_source(conversion.source, conversion.plan.source,
                      {request.check_replicas, conversion.checks_master_weights, workers}, first));
  return {};
}

PublishOptions publish_options(const PreparedConversion& conversion,
                               std::vector<std::string>& leftovers) {
  const ConvertRequest& request = conversion.request;
  PublishOptions publish;
  publish.target = request.output;
  publish.sources = conversion.more_sources;
  publish.sources.push_back(request.input);
  publish.sources.push_back(conversion.source.location.path);
  publish.kept = request.map_files;
  for (const std::string& folder : {request.hf_config_dir, request.models_dir}) {
    if (!folder.empty()) publish.kept.push_back(folder);
  }
  publish.bytes_needed = cost_of(conversion.plan).bytes_written;
  if (request.overwrite) publish.may_replace = may_replace(conversion.plan.target.files);
  // What lies on a server lies neither in OUT nor around it.
  std::erase_if(publish.sources, is_remote_path);
  std::erase_if(publish.kept, is_remote_path);
  publish.report_leftover = [&leftovers](const std::string& path) { leftovers.push_back(path); };
  return publish;
}

Result<ExecuteOptions> execute_options(const PreparedConversion& conversion,
                                       const RunOptions& options) {
  const MemoryBudget budget =
      SW_TRY(budget_of(conversion.request, conversion.source, conversion.plan));
  ExecuteOptions execution;
  execution.threads = budget.threads;
  execution.buffer_bytes = budget.buffer_bytes;
  execution.cancelled = options.cancelled;
  return execution;
}

Status publish_output(const PreparedConversion& conversion, const RunOptions& options,
                      Publication& publication, const std::function<Status()>& remove_journals) {
  // The last one who follows it may have stopped it.
  if (options.cancelled != nullptr && *options.cancelled) {
    return fail(Code::kCancelled, "stopped before the checkpoint was published");
  }
  begin_phase(options, RunPhase::kPublish, 0);
  SW_TRY(conversion.source.files->check_unchanged());
  std::optional<IntegrityFile> digests;
  if (conversion.request.digests) {
    // Reads all again: the journal is still there, should the run be killed meanwhile.
    digests = SW_TRY(make_integrity_file(publication.directory(), conversion.plan.target.files,
                                         thread_count(conversion.request.threads)));
  }
  SW_TRY(remove_journals());
  if (digests) SW_TRY(write_integrity_file(publication.directory(), *digests));
  return publication.commit();
}

}  // namespace shardwright

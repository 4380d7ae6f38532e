// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/fail.h"
#include "convert/master_weights.h"
#include "convert/repeated_shards.h"
#include "convert/replicas.h"
#include "exec/execute.h"
#include "exec/threads.h"
#include "io/publish.h"
#include "shardwright/convert.h"

namespace shardwright {
namespace {

constexpr std::uint64_t kMostBufferBytes = std::uint64_t{64} << 20;

}  // namespace

Result<ConvertReport> run_conversion(const PreparedConversion& conversion,
                                     const RunOptions& options) {
  const ConvertRequest& request = conversion.request;
  SourceFiles& files = *conversion.source.files;
  const Catalog& source = conversion.plan.source;
  SW_TRY(check_replicas(source, request.check_replicas, files));
  if (conversion.source.location.container == Container::kLegacy) {
    SW_TRY(check_shards(source, request.check_replicas, files));
  }
  if (conversion.checks_master_weights) {
    SW_TRY(check_master_weights(source, files, thread_count(request.threads)));
  }
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
  publish.overwrite = request.overwrite;
  const std::unique_ptr<Publication> publication = SW_TRY(Publication::begin(std::move(publish)));

  ExecuteOptions execution;
  execution.threads = thread_count(request.threads);
  execution.buffer_bytes = std::min(kMostBufferBytes, request.max_memory_bytes / 4);
  execution.cancelled = options.cancelled;
  if (options.on_progress) {
    execution.on_progress = [&](const ExecuteProgress& progress) {
      options.on_progress({progress.payload_bytes_done, progress.payload_bytes_total});
    };
  }
  SW_TRY(execute(conversion.plan, files, publication->directory(), execution));
  // The last one who follows it may have stopped it.
  if (options.cancelled != nullptr && *options.cancelled) {
    return fail(Code::kCancelled, "stopped before the checkpoint was published");
  }
  SW_TRY(publication->commit());
  return ConvertReport{request.output, files.bytes_read(), cost.bytes_written, files.opens(),
                       cost.target_files};
}

}  // namespace shardwright

// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

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
  const PlanCost cost = cost_of(conversion.plan);
  PublishOptions publish;
  publish.target = request.output;
  publish.sources = {request.input, conversion.source.location.path};
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
  SW_TRY(execute(conversion.plan, *conversion.source.files, publication->directory(), execution));
  SW_TRY(publication->commit());
  return ConvertReport{request.output, conversion.source.files->bytes_read(), cost.bytes_written,
                       conversion.source.files->opens(), cost.target_files};
}

}  // namespace shardwright

// SPDX-License-Identifier: Apache-2.0
#include "convert/remote_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/fail.h"
#include "base/shell_path.h"
#include "base/text.h"
#include "convert/conversion_output.h"
#include "exec/execute.h"
#include "exec/threads.h"
#include "format/seals.h"
#include "remote/remote_output.h"

namespace shardwright {
namespace {

Status show_all(RemoteOutput& output, std::vector<std::string> files, int threads) {
  std::ranges::stable_sort(files, {}, seal_number);
  const auto is_seal = [](const std::string& path) { return seal_number(path) > 0; };
  const auto seals = std::ranges::find_if(files, is_seal);
  const auto others = static_cast<std::size_t>(seals - files.begin());
  std::atomic<std::size_t> next{0};
  const auto show_others = [&]() -> Status {
    for (std::size_t file = next++; file < others; file = next++) SW_TRY(output.show(files[file]));
    return {};
  };
  SW_TRY(run_on_threads(threads, {}, show_others));
  for (std::size_t file = others; file < files.size(); ++file) SW_TRY(output.show(files[file]));
  return {};
}

Status write_to_server(const PreparedConversion& conversion, const RunOptions& options,
                       const PlanCost& cost, RemoteOutput& output) {
  ExecuteOptions execution = SW_TRY(execute_options(conversion, options));
  if (options.on_progress) {
    execution.on_progress = [&](const ExecuteProgress& progress) {
      options.on_progress({progress.payload_bytes_done, progress.payload_bytes_total});
    };
  }
  begin_phase(options, RunPhase::kCopy, cost.payload_bytes_read);
  SourceFiles& files = *conversion.source.files;
  SW_TRY(execute(conversion.plan, files, output.directory(), execution));
  if (options.cancelled != nullptr && *options.cancelled) {
    return fail(Code::kCancelled, "stopped before the checkpoint was published");
  }
  begin_phase(options, RunPhase::kPublish, 0);
  SW_TRY(files.check_unchanged());
  return show_all(output, conversion.plan.target.files, execution.threads);
}

}  // namespace

Status check_remote_output(const ConvertRequest& request) {
  if (!is_remote_output(request.output)) return {};
  const std::array<std::pair<bool, std::string_view>, 5> kNot = {{
      {request.resume, "--resume"},
      {request.overwrite, "--overwrite"},
      {request.digests, "--digests"},
      {request.sha256, "--sha256"},
      {!request.sign.empty(), "--sign"},
  }};
  for (const auto& [is_asked, flag] : kNot) {
    if (!is_asked) continue;
    return fail(Code::kUsage,
                "{}: {} does not go with an output on a server, where nothing is read back or "
                "replaced; leave it out, or choose a local path and upload what was written",
                printable(request.output), flag);
  }
  return {};
}

Result<ConvertReport> run_to_server(const PreparedConversion& conversion,
                                    const RunOptions& options) {
  const std::string& path = conversion.request.output;
  std::vector<std::string> notes = SW_TRY(compare_source(conversion, options));
  std::vector<std::string> sources = conversion.more_sources;
  sources.push_back(conversion.request.input);
  sources.push_back(conversion.source.location.path);
  const std::unique_ptr<RemoteOutput> output =
      SW_TRY(begin_remote_output(path, sources, options.cancelled));
  const PlanCost cost = cost_of(conversion.plan);
  const Status status = write_to_server(conversion, options, cost, *output);
  if (!status) {
    Error error = status.error();
    const std::vector<std::string> left = output->abandon();
    if (error.code == Code::kCancelled && left.empty()) {
      error.message += translated("; nothing was left behind");
    }
    for (const std::string& one : left) {
      error.message += translated("; {} could not be removed", printable(one));
    }
    if (!left.empty()) {
      error.message += translated("; 'shardwright clean {} --remove' removes unfinished uploads",
                                  shell_path(path));
    }
    return std::unexpected(std::move(error));
  }
  const SourceFiles& files = *conversion.source.files;
  return ConvertReport{path,          files.bytes_read(), cost.bytes_written, 0,
                       files.opens(), cost.target_files,  output->finish(),   std::move(notes)};
}

}  // namespace shardwright

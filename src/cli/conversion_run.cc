// SPDX-License-Identifier: Apache-2.0
#include "cli/conversion_run.h"

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <vector>

#include "base/fail.h"
#include "base/text.h"
#include "cli/json_output.h"
#include "cli/summary.h"
#include "cli/watched_run.h"
#include "format/targets.h"
#include "io/publish.h"

namespace shardwright::cli {
namespace {

namespace fs = std::filesystem;

// Unfinished outputs of this process beside `output`. There should be none: this is to be able to
// say so.
std::vector<std::string> own_leftovers(const std::string& output) {
  std::error_code error;
  const fs::path target = fs::weakly_canonical(output, error);
  const std::string prefix = fmt::format(".{}.partial-{}-", target.filename().string(), ::getpid());
  std::vector<std::string> found;
  for (fs::directory_iterator entry(target.parent_path(), error), end; !error && entry != end;
       entry.increment(error)) {
    if (entry->path().filename().string().starts_with(prefix)) found.push_back(entry->path());
  }
  return found;
}

Error with_leftovers(Error error, const std::string& output) {
  const std::vector<std::string> left = own_leftovers(output);
  if (error.code == Code::kCancelled && left.empty()) {
    error.message += "; nothing was left behind";
  }
  for (const std::string& path : left) {
    error.message += fmt::format("; {} could not be removed, remove it", path);
  }
  return error;
}

}  // namespace

Result<PreparedConversion> prepare_with_progress(const ConvertRequest& request, Console& console) {
  ProgressLine line(console);
  line.begin(RunPhase::kPlan, 0);
  return prepare_conversion(request);
}

Result<FinishedRun> run_with_progress(const PreparedConversion& conversion, Console& console) {
  WatchedRun watched(console);
  Result<ConvertReport> report = run_conversion(conversion, watched.options());
  if (!report) {
    return std::unexpected(with_leftovers(std::move(report).error(), conversion.request.output));
  }
  for (const std::string& path : report->leftovers) {
    console.message(fmt::format(
        "warning: what was replaced is still there and could not be removed: {}; remove it", path));
  }
  return FinishedRun{*std::move(report), watched.seconds()};
}

void tell_notes(const PreparedConversion& conversion, Console& console) {
  for (const std::string& note : conversion.notes) console.note(note);
  for (const std::string& path : stale_partials(conversion.request.output)) {
    console.note(fmt::format("{} was left by a run that was killed; remove it", path));
  }
}

std::string command_line(const ConvertRequest& request) {
  std::string line = fmt::format("shardwright convert {} {} --to {}", shell_quoted(request.input),
                                 shell_quoted(request.output), traits_of(request.format).name);
  if (!traits_of(request.format).has_grid) return line;
  for (const UnusualSize& size : unusual_sizes(request.parallel)) {
    line += fmt::format(" {} {}", size.flag, size.size);
  }
  return line;
}

std::optional<std::uint64_t> free_bytes_at(const std::string& path) {
  std::error_code error;
  fs::path place = fs::absolute(path, error);
  while (!error && !fs::exists(place, error) && place.has_relative_path()) {
    place = place.parent_path();
  }
  const fs::space_info space = fs::space(place, error);
  if (error) return std::nullopt;
  return space.available;
}

}  // namespace shardwright::cli

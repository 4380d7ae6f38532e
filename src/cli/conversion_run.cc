// SPDX-License-Identifier: Apache-2.0
#include "cli/conversion_run.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <optional>

#include "base/fail.h"
#include "base/shell_path.h"
#include "cli/json_output.h"
#include "cli/summary.h"
#include "cli/watched_requests.h"
#include "cli/watched_run.h"
#include "comm/rank_session.h"
#include "convert/set_aside_journals.h"
#include "convert/shared_run.h"
#include "exec/piece_journal.h"
#include "format/targets.h"
#include "io/partial_outputs.h"
#include "io/publish.h"
#include "remote/remote_output.h"

namespace shardwright::cli {
namespace {

namespace fs = std::filesystem;

// Unfinished outputs beside an output. There should be none: this is to be able to say so.
struct Leftovers {
  std::vector<std::string> own;  // of this process
  // Of others, to which a rank's may belong now: whoever ends a job gives them a name of its own.
  bool has_others = false;
};

Leftovers leftovers_of(const std::string& output) {
  std::error_code error;
  // Absolute first: of a relative path that is not there nothing would be resolved.
  const fs::path target = fs::weakly_canonical(fs::absolute(output, error), error);
  Leftovers found;
  if (error) return found;
  const auto outputs = list_partial_outputs(target.parent_path());
  for (const PartialOutput& one : outputs ? *outputs : std::vector<PartialOutput>()) {
    if (one.target != target.filename()) continue;
    if (one.process == ::getpid()) {
      found.own.push_back(one.path);
    } else {
      found.has_others = true;
    }
  }
  return found;
}

Error with_leftovers(Error error, const ConvertRequest& request) {
  if (is_remote_output(request.output)) return error;  // it says so itself
  const Leftovers left = leftovers_of(request.output);
  if (request.resume) {
    for (const std::string& path : left.own) {
      error.message +=
          translated("; what is written is kept in {}: the same command goes on", path);
    }
    return error;
  }
  if (error.code == Code::kCancelled && left.own.empty() && !left.has_others) {
    error.message += translated("; nothing was left behind");
  }
  for (const std::string& path : left.own) {
    error.message += translated("; {} could not be removed, remove it", path);
  }
  return error;
}

void tell_leftovers(const ConvertReport& report, Console& console) {
  for (const std::string& path : report.leftovers) {
    console.message(translated(
        "warning: what was replaced is still there and could not be removed: {}; remove it", path));
  }
}

// Unfinished outputs that killed runs left beside the target.
void tell_killed_runs(const PreparedConversion& conversion, Console& console) {
  if (is_remote_output(conversion.request.output)) return;
  // One rank tells it; the others need not look.
  if (console.ranks() != nullptr && !console.ranks()->is_first()) return;
  return_set_aside(conversion.request.output);
  std::error_code error;
  for (const std::string& path : stale_partials(conversion.request.output)) {
    const bool can_go_on = fs::exists(fs::path(path) / kJournalName, error);
    console.note(
        translated("{} was left by a run that was killed; {}remove it "
                   "('shardwright clean' does)",
                   path, can_go_on ? "go on with it (--resume) or " : ""));
  }
}

}  // namespace

Result<PreparedConversion> prepare_with_progress(const ConvertRequest& request, Console& console) {
  // No argument names what a saved plan reads.
  std::optional<WatchedRequests> requests;
  if (is_remote_path(request.input)) requests.emplace(console);
  ProgressLine line(console);
  line.begin(RunPhase::kPlan, 0);
  if (console.ranks() == nullptr) return prepare_conversion(request);
  return prepare_shared_conversion(request, *console.ranks());
}

Result<FinishedRun> run_with_progress(const PreparedConversion& conversion, Console& console) {
  WatchedRun watched(console);
  RankSession* const ranks = console.ranks();
  Result<ConvertReport> report = ranks == nullptr
                                     ? run_conversion(conversion, watched.options())
                                     : run_shared_conversion(conversion, watched.options(), *ranks);
  if (!report) {
    return std::unexpected(with_leftovers(std::move(report).error(), conversion.request));
  }
  for (const std::string& note : report->notes) console.note(note);
  tell_leftovers(*report, console);
  if (conversion.request.resume) tell_killed_runs(conversion, console);
  return FinishedRun{*std::move(report), watched.seconds()};
}

Result<FinishedRun> run_part_with_progress(const PreparedConversion& conversion,
                                           const SavedPlan& plan, Part part, Console& console) {
  WatchedRun watched(console);
  ConvertReport report = SW_TRY(run_part(conversion, plan, part, watched.options()));
  for (const std::string& note : report.notes) console.note(note);
  return FinishedRun{std::move(report), watched.seconds()};
}

Result<FinishedRun> publish_with_progress(const PreparedConversion& conversion,
                                          const SavedPlan& plan, Console& console) {
  WatchedRun watched(console);
  ConvertReport report = SW_TRY(publish_parts(conversion, plan, watched.options()));
  tell_leftovers(report, console);
  return FinishedRun{std::move(report), watched.seconds()};
}

Result<SavedPlan> read_plan_for(const std::string& file, const ConvertRequest& process) {
  SavedPlan plan = SW_TRY(read_plan_file(file));
  plan.request.threads = process.threads;
  plan.request.max_memory_bytes = process.max_memory_bytes;
  return plan;
}

void tell_notes(const PreparedConversion& conversion, Console& console) {
  for (const std::string& note : conversion.notes) console.note(note);
  // One of them may be gone on with: what is left then is told when that is done.
  if (!conversion.request.resume) tell_killed_runs(conversion, console);
}

std::vector<std::string> notes_of(const PreparedConversion& conversion, const FinishedRun& run) {
  std::vector<std::string> notes = conversion.notes;
  std::ranges::copy(run.report.notes, std::back_inserter(notes));
  return notes;
}

std::string command_line(const ConvertRequest& request) {
  std::string line = fmt::format("shardwright convert {} {} --to {}", shell_path(request.input),
                                 shell_path(request.output), traits_of(request.format).name);
  if (!traits_of(request.format).has_grid) return line;
  for (const UnusualSize& size : unusual_sizes(request.parallel)) {
    line += fmt::format(" {} {}", size.flag, size.size);
  }
  return line;
}

std::optional<std::uint64_t> free_bytes_at(const std::string& path) {
  if (is_remote_output(path)) return std::nullopt;
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

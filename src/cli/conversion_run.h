// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/console.h"
#include "shardwright/convert.h"
#include "shardwright/parts.h"

namespace shardwright::cli {

struct FinishedRun {
  ConvertReport report;
  double seconds = 0.0;
};

/// prepare_conversion, told as the phase that it is.
[[nodiscard]] Result<PreparedConversion> prepare_with_progress(const ConvertRequest& request,
                                                               Console& console);

/// Runs a prepared conversion with progress on the console. Ctrl-C, SIGTERM and SIGHUP, or the
/// console's follower, stop it; the error (kCancelled) then tells what was left on the disk. What
/// was replaced and could not be removed is told too.
[[nodiscard]] Result<FinishedRun> run_with_progress(const PreparedConversion& conversion,
                                                    Console& console);

/// Does a part of a saved plan, or publishes what its parts wrote, as run_with_progress does.
[[nodiscard]] Result<FinishedRun> run_part_with_progress(const PreparedConversion& conversion,
                                                         const SavedPlan& plan, Part part,
                                                         Console& console);
[[nodiscard]] Result<FinishedRun> publish_with_progress(const PreparedConversion& conversion,
                                                        const SavedPlan& plan, Console& console);

/// A saved plan, with the threads and memory of this process. Errors: those of read_plan_file.
[[nodiscard]] Result<SavedPlan> read_plan_for(const std::string& file,
                                              const ConvertRequest& process);

/// What a plan is known to need and do, for the reader of messages: notes, and unfinished outputs
/// that killed runs left beside the target (with --resume when the run is through).
void tell_notes(const PreparedConversion& conversion, Console& console);

/// What a finished run has to say in its document: those notes, and those of the run itself.
[[nodiscard]] std::vector<std::string> notes_of(const PreparedConversion& conversion,
                                                const FinishedRun& run);

/// The command line that asks for the same.
[[nodiscard]] std::string command_line(const ConvertRequest& request);

/// Free space on the disk that a path is or would be on.
[[nodiscard]] std::optional<std::uint64_t> free_bytes_at(const std::string& path);

}  // namespace shardwright::cli

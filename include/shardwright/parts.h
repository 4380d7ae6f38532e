// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "shardwright/convert.h"

namespace shardwright {

/// The share of one of several processes that do a conversion together, and agree on nothing but
/// its saved plan.
struct Part {
  std::uint32_t number = 1;  ///< from 1
  std::uint32_t count = 1;   ///< of processes
};

/// The most parts that a conversion is done in.
inline constexpr std::uint32_t kMostParts = 1U << 16;

/// `3/8`.
[[nodiscard]] std::string part_text(Part part);

/// A conversion that its parts make again, and what tells whether it is still the same.
struct SavedPlan {
  std::string file;        ///< that it was read from, for messages
  ConvertRequest request;  ///< paths are absolute; threads and memory are each part's own
  std::string version;     ///< of the program
  std::string plan;        ///< a digest of everything that the plan does
  std::string source;      ///< a digest of the source files' names, sizes and times of change
  std::uint64_t piece_bytes = 0;  ///< of the pieces of work that the parts share out
};

/// The same request in any working directory: to be prepared where the plan is to be saved, as
/// parts compare the names of all sources' files.
[[nodiscard]] Result<ConvertRequest> with_absolute_paths(ConvertRequest request);

/// What of a conversion is saved. Writes nothing. Errors: those of looking at the source's files;
/// kUsage for a path that is not UTF-8.
[[nodiscard]] Result<SavedPlan> save_plan(const PreparedConversion& conversion);
/// As a file's contents, see docs/formats/journal.md.
[[nodiscard]] std::string plan_file_text(const SavedPlan& plan);

/// Reads such a file, which may be hostile. Errors: kNotFound and its like; kJsonCorrupt for what
/// is no saved plan, naming the field; kCannotResume for one of another version of this program.
[[nodiscard]] Result<SavedPlan> read_plan_file(const std::string& path);

/// Writes the pieces of one part, and makes them durable. What an earlier run of the same part
/// wrote is read back and kept. `conversion`: of `plan`'s request. The first part also compares
/// what guards the source. Parts may run at once, in any order. In the report `bytes_written` and
/// `files_written` are this run's. Errors: those of run_conversion; kCannotResume, where the
/// conversion is not what was saved; kTargetExists, where another process does the same part.
[[nodiscard]] Result<ConvertReport> run_part(const PreparedConversion& conversion,
                                             const SavedPlan& plan, Part part,
                                             const RunOptions& options);

/// Compares all that the parts wrote with what they told of it, writes what only one can, and lets
/// the output appear. In the report `bytes_resumed` is the parts' and `bytes_written` what this run
/// added. Errors: those of run_part; kPartsMissing, naming the parts that are to be run (again).
[[nodiscard]] Result<ConvertReport> publish_parts(const PreparedConversion& conversion,
                                                  const SavedPlan& plan, const RunOptions& options);

}  // namespace shardwright

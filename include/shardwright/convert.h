// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "shardwright/prepared_conversion.h"

namespace shardwright {

struct ConvertProgress {
  std::uint64_t bytes_done = 0;
  std::uint64_t bytes_total = 0;
};

class JobSharing;

/// What a run is doing. Progress is of the phase that began last: kRead where none did.
enum class RunPhase : std::uint8_t { kPlan, kCompare, kRead, kCopy, kPublish };

struct RunOptions {
  std::function<void(const ConvertProgress&)> on_progress;
  const std::atomic<bool>* cancelled = nullptr;  ///< set by a signal handler to stop
  /// Called when a phase begins, with the bytes that it will read; 0: not known. May be empty.
  std::function<void(RunPhase, std::uint64_t)> on_phase;
  /// Other processes that do a part of what is only read; the library's own. Null: none.
  JobSharing* sharing = nullptr;
};

struct ConvertReport {
  std::string output;  ///< the directory that was published
  std::uint64_t bytes_read = 0;
  std::uint64_t bytes_written = 0;
  std::uint64_t bytes_resumed = 0;  ///< that an earlier run had written, not in bytes_written
  std::uint64_t files_opened = 0;
  std::uint64_t files_written = 0;
  /// Folders with what was replaced, or unfinished, that could not be removed.
  std::vector<std::string> leftovers;
  /// Beside PreparedConversion::notes: experts or layers that are alike.
  std::vector<std::string> notes = {};
};

/// Compares replicas, then execute → publish. The output appears whole or not at all. It starts
/// threads of its own and calls back from the calling one. Several threads may run conversions at
/// once, but not the same one: its source counts what is read of it.
[[nodiscard]] Result<ConvertReport> run_conversion(const PreparedConversion& conversion,
                                                   const RunOptions& options);

}  // namespace shardwright

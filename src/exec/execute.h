// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>

#include "exec/finished_pieces.h"
#include "exec/payload_digests.h"
#include "exec/piece_list.h"
#include "exec/target_files.h"
#include "exec/target_framing.h"
#include "io/source_files.h"
#include "shardwright/plan.h"
#include "shardwright/storage.h"

namespace shardwright {

struct ExecuteProgress {
  std::uint64_t payload_bytes_done = 0;
  std::uint64_t payload_bytes_total = 0;
};

struct ExecuteOptions {
  int threads = 1;
  /// Shared by the threads: each gets a tile and a scratch buffer out of it.
  std::uint64_t buffer_bytes = std::uint64_t{64} << 20;
  /// At most so much is read and then written at a time, where it makes no difference to what has
  /// to be read: what a processor's own cache holds takes a tenth less of its time than 4 MiB.
  std::uint64_t tile_bytes = std::uint64_t{1} << 20;
  /// Called a few times a second from the calling thread; may be empty.
  std::function<void(const ExecuteProgress&)> on_progress;
  /// Set from outside (a signal handler) to stop: kCancelled. May be null.
  const std::atomic<bool>* cancelled = nullptr;
  /// Told of all payloads that are written; may be null.
  PayloadDigests* digests = nullptr;
};

/// Where the threads get their pieces from, and what they tell of those that they finished. Both
/// are called by several threads.
class PieceQueue {
 public:
  virtual ~PieceQueue() = default;
  /// The next piece to be done; nothing when there will be none. May wait.
  [[nodiscard]] virtual std::optional<std::uint32_t> take() = 0;
  /// Everything of a piece is written; not durable yet.
  [[nodiscard]] virtual Status finish(std::uint32_t piece, PieceCrcs crcs) = 0;
  /// Work has failed: who waits in take() gets nothing.
  virtual void close() {}
};

/// Carries out pieces of a plan through the threads' fixed buffers: reads, writes payloads and what
/// directly surrounds them. The only code that moves tensor bytes. What is written does not depend
/// on the number of threads. Records of which something was read are read to their end and
/// compared. REQUIRES: check_plan(plan) succeeded. What is known before
/// (TargetFraming::write_known) and the rest of the framing (TargetFraming::finish) are the
/// caller's.
[[nodiscard]] Status execute_pieces(const Plan& plan, const PieceList& pieces, SourceFiles& files,
                                    TargetFiles& target, const TargetFraming& framing,
                                    PieceQueue& queue, const ExecuteOptions& options);

class PieceSharing;

/// What of a plan an earlier run did, who is told of the rest, and who else does some of it.
struct WholeRun {
  FinishedPieces finished;  ///< empty: the target holds nothing yet
  /// Told of each piece that is written, by any thread; may be empty.
  std::function<Status(std::uint32_t piece, const PieceCrcs& crcs)> on_finished;
  PieceSharing* sharing = nullptr;  ///< null: nobody
};

/// Carries out a whole plan: makes the target's files, does all that is not finished (or has others
/// do it), and makes their contents durable. On an error the target holds unfinished files; the
/// owner of the directory removes or keeps them. REQUIRES: check_plan(plan) succeeded.
[[nodiscard]] Status execute(const Plan& plan, const PieceList& pieces, SourceFiles& files,
                             Directory& target, WholeRun run, const ExecuteOptions& options);

/// The same in one go, where nothing is to be gone on with.
[[nodiscard]] Status execute(const Plan& plan, SourceFiles& files, Directory& target,
                             const ExecuteOptions& options);

}  // namespace shardwright

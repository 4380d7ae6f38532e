// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

#include "exec/piece_list.h"

namespace shardwright {

/// One step of a thread: a tile of a unit, or a copied object.
struct TileJob {
  WorkUnit unit;
  Box tile;  ///< in the target tensor; nothing for an object
};

/// Bytes that a step wrote.
struct WrittenRun {
  PieceRun run;
  std::uint32_t crc = 0;
  bool is_framed = false;  ///< with all that surrounds them
};

/// How large a tile of each target tensor is.
using TileBytes = std::vector<std::int64_t>;

/// A piece that several threads work on.
class PieceInWork {
 public:
  PieceInWork(const Plan& plan, const PieceList& pieces, std::uint32_t piece,
              const TileBytes& tile_bytes);

  [[nodiscard]] std::uint32_t piece() const { return piece_; }
  /// The next step; nothing when all are taken.
  [[nodiscard]] const TileJob* take();
  /// Tells what a step wrote. True: it was the last one that was missing.
  [[nodiscard]] bool add(std::vector<WrittenRun> runs);
  /// What the steps wrote, as the piece's runs. REQUIRES: all steps are done.
  [[nodiscard]] std::vector<WrittenRun> joined(const std::vector<PieceRun>& runs);

 private:
  std::uint32_t piece_;
  std::vector<TileJob> jobs_;
  std::atomic<std::size_t> next_{0};
  std::mutex mutex_;
  std::size_t missing_;
  std::vector<WrittenRun> written_;
};

}  // namespace shardwright

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "exec/finished_pieces.h"
#include "exec/piece_in_work.h"
#include "exec/piece_list.h"
#include "exec/target_files.h"
#include "plan/archives.h"
#include "shardwright/plan.h"

namespace shardwright {

/// The bytes of the target's archives around their payloads. What holds a payload's CRC-32 follows
/// when that is known; all else is known before. Borrows the plan and the files.
class TargetFraming {
 public:
  TargetFraming(const Plan& plan, TargetFiles& files)
      : plan_(&plan), files_(&files), storages_(plan) {}

  /// Writes all that is known before any payload: literals, new objects, items without elements and
  /// the heads of archives with several storages.
  [[nodiscard]] Status write_known() const;
  /// Writes what directly surrounds those items that a piece wrote whole. Safe for concurrent use.
  [[nodiscard]] Status frame_all(const std::vector<WrittenRun>& runs) const;
  /// Writes the rest: the frames of items that several pieces share, and all of archives that holds
  /// CRC-32s. REQUIRES: every piece is finished.
  [[nodiscard]] Status finish(const PieceList& pieces, const FinishedPieces& finished) const;

 private:
  // Whether a tensor's chunks are items, each with a frame of its own.
  [[nodiscard]] bool is_item(std::uint32_t tensor) const {
    return plan_->target.tensors[tensor].encoding == Encoding::kTorchItem;
  }
  // Writes what directly surrounds an item's payload.
  [[nodiscard]] Status frame(std::uint32_t tensor, std::uint32_t chunk, std::uint32_t crc) const;
  [[nodiscard]] Status write(std::uint32_t file, std::uint64_t offset,
                             std::string_view bytes) const;
  [[nodiscard]] Status begin_archive(const TargetArchive& archive) const;
  [[nodiscard]] Status end_archive(const TargetArchive& archive,
                                   std::span<const std::uint32_t> crcs) const;

  const Plan* plan_;
  TargetFiles* files_;
  ArchiveStorages storages_;
};

}  // namespace shardwright

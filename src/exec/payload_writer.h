// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "exec/piece_in_work.h"
#include "exec/target_files.h"
#include "shardwright/plan.h"

namespace shardwright {

/// Puts payloads into the target's files. Safe for concurrent use.
class PayloadWriter {
 public:
  /// Borrows both.
  PayloadWriter(const Plan& plan, TargetFiles& files) : plan_(&plan), files_(&files) {}

  /// Writes a contiguous run of a payload; an item that is written whole gets its frame with it.
  [[nodiscard]] Result<WrittenRun> write(const PieceRun& run,
                                         std::span<const std::byte> bytes) const;

 private:
  [[nodiscard]] Status write_item(const StoredTensor& tensor, std::uint32_t chunk,
                                  std::uint32_t crc, std::span<const std::byte> payload) const;

  const Plan* plan_;
  TargetFiles* files_;
};

}  // namespace shardwright

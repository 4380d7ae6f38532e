// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "exec/tile_grid.h"
#include "exec/tile_reader.h"
#include "io/source_files.h"
#include "plan/lower.h"

namespace shardwright {

/// Reads what a plan's target tensors would hold, a tile at a time, without writing them: for
/// decisions that hang on values.
class TensorValues {
 public:
  /// Borrows both.
  TensorValues(const Plan& plan, SourceFiles& files);
  TensorValues(const TensorValues&) = delete;
  TensorValues& operator=(const TensorValues&) = delete;

  [[nodiscard]] TileGrid grid(std::size_t target) const;
  /// The bytes of one tile, row-major; valid until the next call for the same `slot` (0 or 1).
  /// Errors: of reading, kValueOverflow.
  [[nodiscard]] Result<std::span<const std::byte>> read(std::size_t target, const Box& tile,
                                                        int slot = 0);

 private:
  const Plan* plan_;
  Lowering lowering_;
  std::vector<std::byte> scratch_;
  std::vector<std::byte> bytes_[2];
  TileReader reader_;
};

}  // namespace shardwright

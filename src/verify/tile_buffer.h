// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "exec/tile_grid.h"
#include "exec/tile_reader.h"
#include "verify/view.h"

namespace shardwright {

/// Reads a view's tensors tile by tile into memory of its own. One per thread.
class TileBuffer {
 public:
  /// Borrows both. `bytes`: of a tile, and as many again for what is strided or converted.
  TileBuffer(const View& view, const Lowering& lowering, std::size_t bytes);

  /// The elements of a tile that TileGrid gave for `bytes`, row-major; valid until the next call.
  [[nodiscard]] Result<std::span<const std::byte>> read(std::size_t tensor, const Box& tile);

 private:
  const View* view_;
  std::unique_ptr<std::byte[]> memory_;
  std::span<std::byte> tile_;
  TileReader reader_;
};

/// The tiles of one of a view's tensors.
[[nodiscard]] TileGrid tiles_of(const View& view, std::size_t tensor, std::size_t bytes);

/// Bytes of all tensors of a view.
[[nodiscard]] std::uint64_t bytes_of(const View& view);

}  // namespace shardwright

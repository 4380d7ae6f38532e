// SPDX-License-Identifier: Apache-2.0
#include "exec/tile_grid.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "shardwright/catalog.h"

namespace shardwright {
namespace {

RC_GTEST_PROP(TileGrid, CutsEveryTensorOnceIntoSmallContiguousTiles, ()) {
  Dims shape;
  const int axes = *rc::gen::inRange(0, 5);
  for (int axis = 0; axis < axes; ++axis) shape.push_back(*rc::gen::inRange<std::int64_t>(0, 9));
  const std::int64_t tile_bytes = *rc::gen::inRange<std::int64_t>(16, 400);
  const TileGrid grid(shape, 4, tile_bytes);
  StoredTensor tensor{{"t", DType::kF32, shape}, ChunkList(axes), Encoding::kRaw};
  const Dims strides = row_major_strides(shape);
  std::int64_t expected_start = 0;
  for (std::int64_t i = 0; i < grid.count(); ++i) {
    const Box tile = grid.tile(i);
    RC_ASSERT(tile.volume() * 4 <= tile_bytes || tile.volume() == 1);
    std::int64_t start = 0;
    for (int axis = 0; axis < axes; ++axis) start += tile.origin[axis] * strides[axis];
    RC_ASSERT(start == expected_start);
    expected_start += tile.volume();
    tensor.chunks.push_back({tile, 0, {}, {}});
  }
  RC_ASSERT(check_coverage(tensor, Replicas::kForbidden).has_value());
}

}  // namespace
}  // namespace shardwright

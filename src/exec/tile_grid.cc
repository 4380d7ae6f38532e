// SPDX-License-Identifier: Apache-2.0
#include "exec/tile_grid.h"

#include <algorithm>

#include "base/checked.h"
#include "plan/quantising.h"

namespace shardwright {

TileGrid::TileGrid(const Dims& shape, int element_bytes, std::int64_t tile_bytes,
                   const TensorRecipe* recipe)
    : shape_(shape) {
  const Box whole = Box::whole(shape);
  if (whole.is_empty()) return;
  if (shape.empty()) {
    count_ = 1;
    return;
  }
  // The first axis of which one index fits into a tile; the last axis always does.
  std::int64_t index_bytes = whole.volume() / shape[0] * element_bytes;
  std::int64_t leads = 1;
  while (axis_ + 1 < shape.size() && index_bytes > tile_bytes) {
    leads *= shape[axis_];
    ++axis_;
    index_bytes /= shape[axis_];
  }
  step_ = std::clamp<std::int64_t>(tile_bytes / index_bytes, 1, shape[axis_]);
  const std::int64_t at_once = recipe == nullptr ? 1 : rows_at_once(*recipe, axis_);
  if (step_ > at_once) step_ -= step_ % at_once;
  per_lead_ = ceil_div(shape[axis_], step_);
  count_ = leads * per_lead_;
}

Box TileGrid::tile(std::int64_t ordinal) const {
  Box box = Box::whole(shape_);
  if (shape_.empty()) return box;
  std::int64_t lead = ordinal / per_lead_;
  box.origin[axis_] = ordinal % per_lead_ * step_;
  box.shape[axis_] = std::min(step_, shape_[axis_] - box.origin[axis_]);
  for (int axis = axis_ - 1; axis >= 0; --axis) {
    box.origin[axis] = lead % shape_[axis];
    box.shape[axis] = 1;
    lead /= shape_[axis];
  }
  return box;
}

}  // namespace shardwright

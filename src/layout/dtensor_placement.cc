// SPDX-License-Identifier: Apache-2.0
#include "layout/dtensor_placement.h"

#include <algorithm>

#include "base/checked.h"
#include "base/fail.h"

namespace shardwright {
namespace {

Status check_placements(const Dims& shape, const Dims& mesh_sizes,
                        const MeshPlacements& placements) {
  if (static_cast<int>(placements.size()) != mesh_sizes.size()) {
    return fail(Code::kShapeMismatch,
                "placements {}: found {}, expected one for each of {} mesh axes",
                to_string(placements), placements.size(), mesh_sizes.size());
  }
  for (const std::int64_t size : mesh_sizes) {
    if (size < 1) {
      return fail(Code::kShapeMismatch, "mesh: found sizes {}, expected at least 1 each",
                  to_string(mesh_sizes));
    }
  }
  for (const MeshPlacement& placement : placements) {
    if (!placement.is_shard()) continue;
    if (placement.axis < 0 || placement.axis >= shape.size()) {
      return fail(Code::kShapeMismatch,
                  "placements {}: found a shard of axis {}, expected one of {}",
                  to_string(placements), placement.axis, to_string(shape));
    }
  }
  return {};
}

// The mesh axes that shard tensor axis `axis`, in the order in which they cut it.
Result<std::vector<int>> cutting_order(int axis, const Dims& mesh_sizes,
                                       const MeshPlacements& placements) {
  std::vector<int> order;
  std::vector<int> waiting;  // strided, left to right
  const auto settle = [&](std::int64_t done_behind) -> bool {
    const int strided = waiting.back();
    if (placements[static_cast<std::size_t>(strided)].factor != done_behind) return false;
    order.push_back(strided);
    waiting.pop_back();
    return true;
  };
  std::vector<std::int64_t> behind;  // per waiting axis: shards made by axes to its right
  for (int mesh_axis = 0; mesh_axis < mesh_sizes.size(); ++mesh_axis) {
    const MeshPlacement& placement = placements[static_cast<std::size_t>(mesh_axis)];
    if (!placement.is_shard() || placement.axis != axis) continue;
    if (placement.kind == MeshPlacement::Kind::kStridedShard && placement.factor != 1) {
      waiting.push_back(mesh_axis);
      behind.push_back(1);
      continue;
    }
    order.push_back(mesh_axis);
    std::int64_t made = mesh_sizes[mesh_axis];
    while (!waiting.empty()) {
      behind.back() *= made;
      if (!settle(behind.back())) break;
      made = behind.back() * mesh_sizes[order.back()];
      behind.pop_back();
    }
  }
  if (waiting.empty()) return order;
  return fail(Code::kShapeMismatch,
              "placements {}: found a stride factor of {}, expected the product of the shards of "
              "axis {} to its right",
              to_string(placements), placements[static_cast<std::size_t>(waiting.back())].factor,
              axis);
}

}  // namespace

std::string to_string(const MeshPlacements& placements) {
  std::string text = "[";
  for (const MeshPlacement& placement : placements) {
    if (text.size() > 1) text += ", ";
    if (placement.kind == MeshPlacement::Kind::kReplicate) {
      text += "Replicate";
    } else if (placement.kind == MeshPlacement::Kind::kShard) {
      text += fmt::format("Shard({})", placement.axis);
    } else {
      text += fmt::format("StridedShard({}, {})", placement.axis, placement.factor);
    }
  }
  return text + "]";
}

ShardRows chunk_of(const ShardRows& whole, std::int64_t count, std::int64_t index) {
  const std::int64_t rows = ceil_div(whole.rows, count);
  // Without sums beyond whole.rows: an extent may be as large as a number can be.
  const bool is_behind = rows == 0 || index > whole.rows / rows;
  const std::int64_t begin = is_behind ? whole.rows : rows * index;
  return {whole.offset + begin, std::min(rows, whole.rows - begin)};
}

Result<Box> local_box(const Dims& global_shape, const Dims& mesh_sizes,
                      const MeshPlacements& placements, const Dims& coordinate) {
  SW_TRY(check_placements(global_shape, mesh_sizes, placements));
  bool is_inside = coordinate.size() == mesh_sizes.size();
  for (int axis = 0; is_inside && axis < coordinate.size(); ++axis) {
    is_inside = coordinate[axis] >= 0 && coordinate[axis] < mesh_sizes[axis];
  }
  if (!is_inside) {
    return fail(Code::kShapeMismatch, "coordinate {}: expected one in a mesh of {}",
                to_string(coordinate), to_string(mesh_sizes));
  }
  Box box = Box::whole(global_shape);
  for (int axis = 0; axis < global_shape.size(); ++axis) {
    const std::vector<int> order = SW_TRY(cutting_order(axis, mesh_sizes, placements));
    ShardRows rows{0, global_shape[axis]};
    for (const int mesh_axis : order) {
      rows = chunk_of(rows, mesh_sizes[mesh_axis], coordinate[mesh_axis]);
    }
    box.origin[axis] = rows.rows == 0 && !order.empty() ? global_shape[axis] : rows.offset;
    box.shape[axis] = rows.rows;
  }
  return box;
}

Result<Dims> global_shape_of(const Dims& local_shape, const Dims& mesh_sizes,
                             const MeshPlacements& placements) {
  SW_TRY(check_placements(local_shape, mesh_sizes, placements));
  Dims shape = local_shape;
  for (std::size_t i = 0; i < placements.size(); ++i) {
    if (!placements[i].is_shard()) continue;
    std::int64_t& extent = shape[placements[i].axis];
    const auto product = checked_mul(extent, mesh_sizes[static_cast<int>(i)]);
    if (!product) {
      return fail(Code::kShapeMismatch, "local shape {}: the global one goes beyond int64",
                  to_string(local_shape));
    }
    extent = *product;
  }
  return shape;
}

Result<Dims> agreed_shape(std::string_view name, std::span<const ReportedShape> shapes) {
  const ReportedShape& first = shapes.front();
  for (const ReportedShape& other : shapes) {
    if (other.shape == first.shape) continue;
    return fail(Code::kShapeMismatch,
                "tensor {}: found a global shape of {} on rank {} and {} on rank {}, expected the "
                "same; the rows of this parameter are not shared out evenly",
                name, to_string(other.shape), other.rank, to_string(first.shape), first.rank);
  }
  return first.shape;
}

}  // namespace shardwright

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "layout/device_mesh.h"
#include "shardwright/error.h"
#include "shardwright/tensor.h"

namespace shardwright {

/// How one axis of a mesh holds a DTensor.
struct MeshPlacement {
  enum class Kind : std::uint8_t {
    kReplicate,
    kShard,         ///< the ranks along the axis share out tensor axis `axis`
    kStridedShard,  ///< the same after `factor` shards that axes to the right make (FSDP over TP)
  };
  Kind kind = Kind::kReplicate;
  int axis = 0;
  std::int64_t factor = 1;

  [[nodiscard]] static MeshPlacement replicate() { return {}; }
  [[nodiscard]] static MeshPlacement shard(int axis) { return {Kind::kShard, axis, 1}; }
  [[nodiscard]] static MeshPlacement strided_shard(int axis, std::int64_t factor) {
    return {Kind::kStridedShard, axis, factor};
  }
  [[nodiscard]] bool is_shard() const { return kind != Kind::kReplicate; }
  friend bool operator==(const MeshPlacement&, const MeshPlacement&) = default;
};
using MeshPlacements = std::vector<MeshPlacement>;  ///< one per axis of the mesh

/// `[Replicate, Shard(0), StridedShard(0, 2)]`.
[[nodiscard]] std::string to_string(const MeshPlacements& placements);

/// Rows [offset, offset + rows) of an axis.
struct ShardRows {
  std::int64_t offset = 0;
  std::int64_t rows = 0;

  friend bool operator==(const ShardRows&, const ShardRows&) = default;
};

/// Piece `index` of `count` by torch.chunk's arithmetic: all pieces have ceil(rows / count) rows
/// but the last ones, which have fewer or none. An empty piece begins where `whole` ends.
[[nodiscard]] ShardRows chunk_of(const ShardRows& whole, std::int64_t count, std::int64_t index);

/// What the rank at `coordinate` of a mesh holds of a tensor. Several mesh axes may shard one
/// tensor axis: they cut it from left to right, strided ones after the axes that their factor
/// stands for. A box without elements begins, on the axis that ran out, at the tensor's end, as
/// torch says it. Errors: kShapeMismatch for placements that do not fit mesh and tensor, or a
/// stride factor that is not the product of the shards to the right (then a rank has no box).
[[nodiscard]] Result<Box> local_box(const Dims& global_shape, const Dims& mesh_sizes,
                                    const MeshPlacements& placements, const Dims& coordinate);

/// The shape whose even shards have `local_shape`: each sharded axis times the sizes of the mesh
/// axes that shard it. Its strides are row-major. Errors: kShapeMismatch.
[[nodiscard]] Result<Dims> global_shape_of(const Dims& local_shape, const Dims& mesh_sizes,
                                           const MeshPlacements& placements);

/// What a rank says of a tensor's global shape.
struct ReportedShape {
  std::int64_t rank = 0;
  Dims shape;
};

/// The shape that all ranks report of one tensor. Error: kShapeMismatch, naming two ranks that
/// disagree and what they say. REQUIRES: at least one.
[[nodiscard]] Result<Dims> agreed_shape(std::string_view name,
                                        std::span<const ReportedShape> shapes);

}  // namespace shardwright

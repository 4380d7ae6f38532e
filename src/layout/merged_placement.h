// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "layout/device_mesh.h"
#include "layout/dtensor_placement.h"

namespace shardwright {

/// A model parameter that FSDP2 made a DTensor.
struct FsdpParameter {
  DeviceMesh mesh;
  MeshPlacements placements;
  Dims local_shape;    ///< of this rank
  Dims logical_shape;  ///< what FSDP says of the whole; counts its own mesh only
};

/// The DTensor that stands for a parameter in a checkpoint.
struct CheckpointPlacement {
  DeviceMesh mesh;
  MeshPlacements placements;
  Dims shape;    ///< global
  Dims strides;  ///< of that shape, row-major, in elements
};

/// Whether some mesh axis of more than one rank shards.
[[nodiscard]] bool shards_something(const Dims& mesh_sizes, const MeshPlacements& placements);

/// A parameter that is no DTensor: the checkpoint's mesh and placements, and the shape that its
/// shards make. Error: kShapeMismatch.
[[nodiscard]] Result<CheckpointPlacement> place_plain(const DeviceMesh& mesh,
                                                      const MeshPlacements& placements,
                                                      const Dims& local_shape);

/// A parameter under FSDP2 that the checkpoint places on `mesh` with `placements`:
///
/// * Where these shard nothing, the parameter keeps its own mesh, placements and logical shape, so
///   that ranks with empty shards stay what they are.
/// * Else the FSDP shard is merged in: the mesh axis whose ranks are FSDP's gets its placement, and
///   the shape counts the local one on every axis that shards. FSDP's own logical shape knows
///   nothing of experts and tensor parallelism.
///
/// Errors name the parameter: kComponentLayout where no axis of the checkpoint's mesh has FSDP's
/// ranks (hybrid sharding, DP and CP flattened together), kShapeMismatch.
[[nodiscard]] Result<CheckpointPlacement> merge_placement(std::string_view name,
                                                          const DeviceMesh& mesh,
                                                          const MeshPlacements& placements,
                                                          const FsdpParameter& parameter);

/// What loading does with the piece that a rank got.
enum class CopyBack : std::uint8_t {
  kCopy,
  kNothing,  ///< the rank holds no elements: whatever the piece is, there is nothing to do
};

/// Error: kShapeMismatch where a rank that holds elements got a piece of another shape.
[[nodiscard]] Result<CopyBack> copy_back(std::string_view name, const Dims& target_local,
                                         const Dims& source_local);

}  // namespace shardwright

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

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

/// In which order the ranks that share out a tensor axis count.
enum class FsdpOrder : std::uint8_t {
  /// FSDP's cut lies inside those of EP and TP, as it was made: rows are in the model's order, so
  /// that they can be read at other sizes, and need not divide evenly.
  kInside,
  /// MLite's order: FSDP's index counts first, though it cut last. Rows can only be read at the
  /// sizes that wrote them, and each rank must have as many.
  kOutside,
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
/// shards make. Error: kShapeMismatch, naming the parameter.
[[nodiscard]] Result<CheckpointPlacement> place_plain(std::string_view name, const DeviceMesh& mesh,
                                                      const MeshPlacements& placements,
                                                      const Dims& local_shape);

/// A parameter under FSDP2 that the checkpoint places on `mesh` with `placements`:
///
/// * Where these shard nothing, the parameter keeps its own mesh, placements and logical shape, so
///   that ranks with empty shards stay what they are.
/// * Else the FSDP shard is merged in: the mesh axis whose ranks are FSDP's gets its placement, and
///   the shape counts FSDP's whole on every other axis that shards. FSDP's own logical shape knows
///   nothing of experts and tensor parallelism.
///
/// Errors name the parameter: kComponentLayout where no axis of the checkpoint's mesh has FSDP's
/// ranks (hybrid sharding, DP and CP flattened together), kShapeMismatch, of kOutside also where
/// FSDP's ranks have different shapes and so would not agree about the whole.
[[nodiscard]] Result<CheckpointPlacement> merge_placement(std::string_view name,
                                                          const DeviceMesh& mesh,
                                                          const MeshPlacements& placements,
                                                          const FsdpParameter& parameter,
                                                          FsdpOrder order);

/// The box of a rank's piece, or nullopt for a rank outside of the mesh. Error: kShapeMismatch,
/// naming the parameter, where the box is not of the shape that the rank has.
[[nodiscard]] Result<std::optional<Box>> placed_box(std::string_view name,
                                                    const CheckpointPlacement& placement,
                                                    std::int64_t rank, const Dims& local_shape);

/// What loading does with the piece that a rank got.
enum class CopyBack : std::uint8_t {
  kCopy,
  kNothing,  ///< the rank holds no elements: whatever the piece is, there is nothing to do
};

/// Error: kShapeMismatch where a rank that holds elements got a piece of another shape.
[[nodiscard]] Result<CopyBack> copy_back(std::string_view name, const Dims& target_local,
                                         const Dims& source_local);

}  // namespace shardwright

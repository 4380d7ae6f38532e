// SPDX-License-Identifier: Apache-2.0
#include "layout/merged_placement.h"

#include <algorithm>
#include <optional>

#include "base/fail.h"

namespace shardwright {
namespace {

bool is_empty(const Dims& shape) { return std::ranges::find(shape, 0) != shape.end(); }

// FSDP's placement: the only one of its mesh that shards.
Result<MeshPlacement> fsdp_shard(std::string_view name, const FsdpParameter& parameter) {
  std::optional<MeshPlacement> found;
  for (const MeshPlacement& placement : parameter.placements) {
    if (!placement.is_shard()) continue;
    if (found) {
      return fail(Code::kComponentLayout,
                  "parameter {}: found FSDP placements {}, expected one that shards", name,
                  to_string(parameter.placements));
    }
    found = placement;
  }
  if (found) return *found;
  return fail(Code::kComponentLayout, "parameter {}: found FSDP placements {}, expected a shard",
              name, to_string(parameter.placements));
}

// The axis of the checkpoint's mesh along which FSDP's ranks lie.
std::optional<int> fsdp_axis(const DeviceMesh& mesh, const MeshPlacements& placements,
                             const FsdpParameter& parameter) {
  for (int axis = 0; axis < mesh.axes(); ++axis) {
    if (placements[static_cast<std::size_t>(axis)].is_shard()) continue;
    if (mesh.has_line(axis, parameter.mesh.ranks())) return axis;
  }
  return std::nullopt;
}

CheckpointPlacement with_strides(DeviceMesh mesh, MeshPlacements placements, const Dims& shape) {
  return {std::move(mesh), std::move(placements), shape, row_major_strides(shape)};
}

}  // namespace

bool shards_something(const Dims& mesh_sizes, const MeshPlacements& placements) {
  for (std::size_t i = 0; i < placements.size(); ++i) {
    if (placements[i].is_shard() && mesh_sizes[static_cast<int>(i)] > 1) return true;
  }
  return false;
}

Result<CheckpointPlacement> place_plain(const DeviceMesh& mesh, const MeshPlacements& placements,
                                        const Dims& local_shape) {
  const Dims shape = SW_TRY(global_shape_of(local_shape, mesh.sizes(), placements));
  return with_strides(mesh, placements, shape);
}

Result<CheckpointPlacement> merge_placement(std::string_view name, const DeviceMesh& mesh,
                                            const MeshPlacements& placements,
                                            const FsdpParameter& parameter) {
  const auto named = [&](Error error) {
    return std::unexpected(std::move(error).within(fmt::format("parameter {}", name)));
  };
  const Result<Dims> plain = global_shape_of(parameter.local_shape, mesh.sizes(), placements);
  if (!plain) return named(plain.error());
  if (!shards_something(mesh.sizes(), placements)) {
    return with_strides(parameter.mesh, parameter.placements, parameter.logical_shape);
  }
  // FSDP over one rank shards nothing: there is nothing to merge.
  if (parameter.mesh.ranks().size() == 1) return with_strides(mesh, placements, *plain);
  const MeshPlacement shard = SW_TRY(fsdp_shard(name, parameter));
  const std::optional<int> axis = fsdp_axis(mesh, placements, parameter);
  if (!axis) {
    return fail(
        Code::kComponentLayout,
        "parameter {}: found FSDP over {} ranks that lie along no axis of the checkpoint's "
        "mesh {} with {}, expected one (hybrid sharding and DP flattened with CP have none)",
        name, parameter.mesh.ranks().size(), to_string(mesh.sizes()), to_string(placements));
  }
  MeshPlacements merged = placements;
  merged[static_cast<std::size_t>(*axis)] = MeshPlacement::shard(shard.axis);
  const Result<Dims> shape = global_shape_of(parameter.local_shape, mesh.sizes(), merged);
  if (!shape) return named(shape.error());
  return with_strides(mesh, std::move(merged), *shape);
}

Result<CopyBack> copy_back(std::string_view name, const Dims& target_local,
                           const Dims& source_local) {
  if (is_empty(target_local)) return CopyBack::kNothing;
  if (target_local == source_local) return CopyBack::kCopy;
  return fail(Code::kShapeMismatch, "parameter {}: found a piece of shape {}, expected {}", name,
              to_string(source_local), to_string(target_local));
}

}  // namespace shardwright

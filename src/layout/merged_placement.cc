// SPDX-License-Identifier: Apache-2.0
#include "layout/merged_placement.h"

#include <algorithm>
#include <optional>

#include "base/fail.h"

namespace shardwright {
namespace {

bool has_no_elements(const Dims& shape) { return std::ranges::find(shape, 0) != shape.end(); }

// FSDP's placement: the only one of its mesh that shards.
Result<MeshPlacement> fsdp_shard(std::string_view name, const FsdpParameter& parameter) {
  std::optional<MeshPlacement> found;
  if (static_cast<int>(parameter.placements.size()) != parameter.mesh.axes()) {
    return fail(Code::kShapeMismatch,
                "parameter {}: found {} FSDP placements, expected one for each of {} mesh axes",
                name, parameter.placements.size(), parameter.mesh.axes());
  }
  for (const MeshPlacement& placement : parameter.placements) {
    if (!placement.is_shard()) continue;
    if (found) {
      return fail(Code::kComponentLayout,
                  "parameter {}: found FSDP placements {}, expected one that shards", name,
                  to_string(parameter.placements));
    }
    found = placement;
  }
  if (found && found->axis >= 0 && found->axis < parameter.logical_shape.size()) return *found;
  return fail(Code::kComponentLayout,
              "parameter {}: found FSDP placements {}, expected a shard of an axis of {}", name,
              to_string(parameter.placements), to_string(parameter.logical_shape));
}

// The axis of the checkpoint's mesh along which FSDP's ranks lie. Those of hybrid sharding are
// several groups, each of which has the whole parameter.
std::optional<int> fsdp_axis(const DeviceMesh& mesh, const MeshPlacements& placements,
                             const FsdpParameter& parameter) {
  for (int axis = 0; axis < parameter.mesh.axes(); ++axis) {
    const bool shards = parameter.placements[static_cast<std::size_t>(axis)].is_shard();
    if (!shards && parameter.mesh.sizes()[axis] > 1) return std::nullopt;
  }
  for (int axis = 0; axis < mesh.axes(); ++axis) {
    if (placements[static_cast<std::size_t>(axis)].is_shard()) continue;
    if (mesh.has_line(axis, parameter.mesh.ranks())) return axis;
  }
  return std::nullopt;
}

// FSDP's cut of `axis`, made after those of the mesh axes to its right.
MeshPlacement inside(const MeshPlacement& shard, const DeviceMesh& mesh,
                     const MeshPlacements& placements, int fsdp) {
  std::int64_t factor = 1;
  for (int axis = fsdp + 1; axis < mesh.axes(); ++axis) {
    const MeshPlacement& placement = placements[static_cast<std::size_t>(axis)];
    if (placement.is_shard() && placement.axis == shard.axis) factor *= mesh.sizes()[axis];
  }
  if (factor == 1) return MeshPlacement::shard(shard.axis);
  return MeshPlacement::strided_shard(shard.axis, factor);
}

Status check_even(std::string_view name, const FsdpParameter& parameter, int axis) {
  const std::int64_t rows = parameter.logical_shape[axis];
  const auto ranks = static_cast<std::int64_t>(parameter.mesh.ranks().size());
  if (rows % ranks == 0) return {};
  return fail(Code::kShapeMismatch,
              "parameter {}: found {} rows over {} FSDP ranks, which would disagree about the "
              "global shape, expected a multiple; use the order that keeps FSDP's cut inside",
              name, rows, ranks);
}

std::unexpected<Error> named(std::string_view name, Error error) {
  return std::unexpected(std::move(error).within(fmt::format("parameter {}", name)));
}

// What all ranks of the checkpoint's mesh hold where each rank, or its FSDP group, holds `part`.
Result<Dims> whole_shape(std::string_view name, const DeviceMesh& mesh,
                         const MeshPlacements& placements, const Dims& part) {
  Result<Dims> shape = global_shape_of(part, mesh.sizes(), placements);
  if (!shape) return named(name, std::move(shape).error());
  return shape;
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

Result<CheckpointPlacement> place_plain(std::string_view name, const DeviceMesh& mesh,
                                        const MeshPlacements& placements, const Dims& local_shape) {
  const Dims shape = SW_TRY(whole_shape(name, mesh, placements, local_shape));
  return with_strides(mesh, placements, shape);
}

Result<CheckpointPlacement> merge_placement(std::string_view name, const DeviceMesh& mesh,
                                            const MeshPlacements& placements,
                                            const FsdpParameter& parameter, FsdpOrder order) {
  const Dims shape = SW_TRY(whole_shape(name, mesh, placements, parameter.logical_shape));
  if (!shards_something(mesh.sizes(), placements)) {
    return with_strides(parameter.mesh, parameter.placements, parameter.logical_shape);
  }
  // FSDP over one rank shards nothing: there is nothing to merge.
  if (parameter.mesh.ranks().size() == 1) return with_strides(mesh, placements, shape);
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
  MeshPlacement& fsdp = merged[static_cast<std::size_t>(*axis)];
  if (order == FsdpOrder::kOutside) {
    SW_TRY(check_even(name, parameter, shard.axis));
    fsdp = MeshPlacement::shard(shard.axis);
  } else {
    fsdp = inside(shard, mesh, placements, *axis);
  }
  return with_strides(mesh, std::move(merged), shape);
}

Result<std::optional<Box>> placed_box(std::string_view name, const CheckpointPlacement& placement,
                                      std::int64_t rank, const Dims& local_shape) {
  const std::optional<Dims> coordinate = placement.mesh.coordinate_of(rank);
  if (!coordinate) return std::nullopt;
  Result<Box> box =
      local_box(placement.shape, placement.mesh.sizes(), placement.placements, *coordinate);
  if (!box) return named(name, std::move(box).error());
  if (box->shape == local_shape) return *box;
  return fail(Code::kShapeMismatch,
              "parameter {}: found a piece of shape {} on rank {}, expected {} by {} of {}", name,
              to_string(local_shape), rank, to_string(box->shape), to_string(placement.placements),
              to_string(placement.shape));
}

Result<CopyBack> copy_back(std::string_view name, const Dims& target_local,
                           const Dims& source_local) {
  if (has_no_elements(target_local)) return CopyBack::kNothing;
  if (target_local == source_local) return CopyBack::kCopy;
  return fail(Code::kShapeMismatch, "parameter {}: found a piece of shape {}, expected {}", name,
              to_string(source_local), to_string(target_local));
}

}  // namespace shardwright

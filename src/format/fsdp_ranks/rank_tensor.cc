// SPDX-License-Identifier: Apache-2.0
#include "format/fsdp_ranks/rank_tensor.h"

#include "base/fail.h"
#include "base/text.h"
#include "layout/dtensor_placement.h"

namespace shardwright {
namespace {

using pickle::Kind;
using pickle::Value;

std::unexpected<Error> refuse_spelling(std::string_view what) {
  return fail(Code::kTorchArchive, "its pickle does not say {}", what);
}

// Whole numbers of a tuple, a list or a torch.Size.
Result<Dims> read_extents(Value value, std::string_view what) {
  if (value.is(Kind::kReduce)) value = value.args()[0];
  if (!value.is(Kind::kTuple) && !value.is(Kind::kList)) return refuse_spelling(what);
  if (value.size() > static_cast<std::size_t>(kMaxAxes)) return refuse_spelling(what);
  Dims extents;
  for (std::size_t i = 0; i < value.size(); ++i) {
    const std::optional<std::int64_t> extent = value[i].as_int();
    if (!extent || *extent < 0) return refuse_spelling(what);
    extents.push_back(*extent);
  }
  return extents;
}

// What one axis of a mesh counts, which torch may spell as a product.
Result<std::int64_t> mesh_size(Value shape) {
  if (const std::optional<std::int64_t> size = shape.as_int()) return *size;
  return element_count(SW_TRY(read_extents(shape, "how large its device mesh is")));
}

// torch 2.9 and later describe a mesh by a layout, earlier ones have the tensor of its ranks.
Result<Dims> mesh_sizes(Value mesh) {
  const Value layout = mesh.attribute("_layout");
  if (!layout) {
    const Value ranks = mesh.attribute("mesh");
    if (!is_tensor(ranks)) return refuse_spelling("how large its device mesh is");
    return SW_TRY(read_torch_view(ranks)).shape;
  }
  const Value axes = layout.attribute("axes");
  const Value shapes = axes ? axes : layout.attribute("shape");
  Dims sizes;
  if (shapes.as_int()) {
    sizes.push_back(*shapes.as_int());
    return sizes;
  }
  if (!shapes.is(Kind::kTuple) || shapes.size() > static_cast<std::size_t>(kMaxAxes)) {
    return refuse_spelling("how large its device mesh is");
  }
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    sizes.push_back(SW_TRY(mesh_size(axes ? shapes[i].attribute("shape") : shapes[i])));
  }
  return sizes;
}

std::optional<std::int64_t> argument_of(Value placement, std::string_view name, std::size_t index) {
  if (const Value value = placement.attribute(name)) return value.as_int();
  return placement.args()[index].as_int();
}

Result<MeshPlacement> read_placement(Value value) {
  const std::string_view name = value.callable().name();
  if (name == "Replicate") return MeshPlacement::replicate();
  if (name != "Shard" && name != "_StridedShard") {
    return fail(Code::kUnsupportedFormat, "it is placed as {}, expected Shard or Replicate",
                name.empty() ? "something unknown" : printable(name));
  }
  const std::optional<std::int64_t> axis = argument_of(value, "dim", 0);
  if (!axis || *axis < 0 || *axis >= kMaxAxes) return refuse_spelling("which axis is cut");
  if (name == "Shard") return MeshPlacement::shard(static_cast<int>(*axis));
  const std::optional<std::int64_t> factor = argument_of(value, "split_factor", 1);
  if (!factor || *factor < 1) return refuse_spelling("how a strided shard is cut");
  return MeshPlacement::strided_shard(static_cast<int>(*axis), *factor);
}

Result<RankTensor> read_dtensor(const Dims& shape, Value state) {
  if (state.is(Kind::kTuple)) state = state[1];  // a dict, which has nothing, and slots
  const Value spec = state.find("_spec");
  const Value mesh = spec.attribute("mesh");
  const Value placements = spec.attribute("placements");
  RankTensor tensor{shape, {{state.find("_local_tensor"), {}}}};
  if (!mesh || !placements.is(Kind::kTuple) || !is_tensor(tensor.pieces[0].local)) {
    return refuse_spelling("where this rank's piece of it belongs");
  }
  MeshPlacements placed;
  for (std::size_t i = 0; i < placements.size(); ++i) {
    placed.push_back(SW_TRY(read_placement(placements[i])));
  }
  const Dims sizes = SW_TRY(mesh_sizes(mesh));
  const Value at = mesh.attribute("_coordinate_on_dim");
  const Dims local = SW_TRY(read_torch_view(tensor.pieces[0].local)).shape;
  if (at.is_none() && element_count(local) == 0) {  // the mesh is of other ranks
    tensor.pieces.clear();
    return tensor;
  }
  const Dims coordinate = SW_TRY(read_extents(at, "at which rank it was"));
  tensor.pieces[0].box = SW_TRY(local_box(shape, sizes, placed, coordinate));
  return tensor;
}

Result<RankTensor> read_sharded(const Dims& shape, Value state) {
  const Value shards = state[0];
  if (!state.is(Kind::kTuple) || !shards.is(Kind::kList)) {
    return refuse_spelling("which shards of it this rank has");
  }
  RankTensor tensor{shape, {}};
  for (std::size_t i = 0; i < shards.size(); ++i) {
    const Value place = shards[i].attribute("metadata");
    const Value local = shards[i].attribute("tensor");
    if (!is_tensor(local)) return refuse_spelling("which shards of it this rank has");
    const Dims origin = SW_TRY(read_extents(place.attribute("shard_offsets"), "where a shard is"));
    const Dims extents = SW_TRY(read_extents(place.attribute("shard_sizes"), "where a shard is"));
    tensor.pieces.push_back({local, SW_TRY(make_box(origin, extents, shape))});
  }
  return tensor;
}

}  // namespace

Result<RankTensor> read_rank_tensor(Value value) {
  const Value args = value.args();
  const bool is_wrapped = value.callable().is_global("torch._tensor", "_rebuild_from_type_v2") &&
                          args[0].is_global("torch._utils", "_rebuild_wrapper_subclass");
  if (!is_wrapped) {
    const Dims shape = SW_TRY(read_torch_view(value)).shape;
    return RankTensor{shape, {{value, Box::whole(shape)}}};
  }
  const Dims shape = SW_TRY(read_extents(args[2][2], "which shape it has"));
  SW_TRY(element_count(shape));
  if (args[1].name() == "DTensor") return read_dtensor(shape, args[3]);
  if (args[1].name() == "ShardedTensor") return read_sharded(shape, args[3]);
  return fail(Code::kUnsupportedFormat, "it is a {}, expected a tensor, DTensor or ShardedTensor",
              printable(args[1].name()));
}

}  // namespace shardwright

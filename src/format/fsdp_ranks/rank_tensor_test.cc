// SPDX-License-Identifier: Apache-2.0
#include "format/fsdp_ranks/rank_tensor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace shardwright {
namespace {

using pickle::Document;
using pickle::Value;
using ::testing::HasSubstr;

// Spells what torch pickles for a piece of a (10, 4) tensor.
class Spelling {
 public:
  Value local(const Dims& shape) { return make_torch_tensor(d, DType::kF32, shape, "0"); }

  Value numbers(const std::vector<std::int64_t>& values, bool as_list = false) {
    std::vector<Value> items;
    for (const std::int64_t value : values) items.push_back(d.integer(value));
    return as_list ? d.list(items) : d.tuple(items);
  }

  Value wrapped(const char* type, Value size, Value state) {
    const Value cls = d.global("torch.distributed", type);
    const Value arguments = d.tuple({cls, d.global("torch", "float32"), size});
    const Value function = d.global("torch._utils", "_rebuild_wrapper_subclass");
    return d.reduce(d.global("torch._tensor", "_rebuild_from_type_v2"),
                    d.tuple({function, cls, arguments, state}));
  }

  Value placement(const char* name, std::int64_t dim = -1, std::int64_t factor = -1) {
    const Value made = d.object(d.global("torch.distributed.tensor.placement_types", name));
    if (dim >= 0) d.set_attribute(made, "dim", d.integer(dim));
    if (factor >= 0) d.set_attribute(made, "split_factor", d.integer(factor));
    return made;
  }

  // `axes`: a layout as torch 2.11 has it; else as torch 2.9 has it.
  Value mesh(const std::vector<std::int64_t>& sizes, const std::vector<std::int64_t>& coordinate,
             bool axes = true) {
    const Value layout = d.object(d.global("torch.distributed._mesh_layout", "_MeshLayout"));
    if (axes) {
      std::vector<Value> each;
      for (const std::int64_t size : sizes) {
        each.push_back(d.object(d.global("torch.distributed._mesh_layout", "_FlatLayout")));
        d.set_attribute(each.back(), "shape", numbers({size}));
      }
      d.set_attribute(layout, "axes", d.tuple(each));
    } else {
      d.set_attribute(layout, "shape", sizes.size() == 1 ? d.integer(sizes[0]) : numbers(sizes));
    }
    const Value made = d.object(d.global("torch.distributed.device_mesh", "DeviceMesh"));
    d.set_attribute(made, "_layout", layout);
    d.set_attribute(made, "_coordinate_on_dim", numbers(coordinate, !axes));
    return made;
  }

  Value dtensor(Value mesh, const std::vector<Value>& placements, const Dims& piece) {
    const Value spec = d.object(d.global("torch.distributed.tensor._dtensor_spec", "DTensorSpec"));
    d.set_attribute(spec, "mesh", mesh);
    d.set_attribute(spec, "placements", d.tuple(placements));
    const Value slots = d.dict();
    d.set(slots, "_local_tensor", local(piece));
    d.set(slots, "_spec", spec);
    return wrapped("DTensor", numbers({10, 4}), d.tuple({d.none(), slots}));
  }

  Value shard(const std::vector<std::int64_t>& origin, const std::vector<std::int64_t>& sizes) {
    const Value place = d.object(d.global("torch.distributed._shard.metadata", "ShardMetadata"));
    d.set_attribute(place, "shard_offsets", numbers(origin, true));
    d.set_attribute(place, "shard_sizes", numbers(sizes, true));
    const Value made = d.object(d.global("torch.distributed._shard.sharded_tensor", "Shard"));
    d.set_attribute(made, "tensor", local({sizes[0], sizes[1]}));
    d.set_attribute(made, "metadata", place);
    return made;
  }

  Document d;
};

Box box_of(Value value) {
  const Result<RankTensor> tensor = read_rank_tensor(value);
  EXPECT_TRUE(tensor) << (tensor ? "" : tensor.error().message);
  if (!tensor || tensor->pieces.size() != 1) return {};
  EXPECT_EQ(tensor->shape, (Dims{10, 4}));
  return tensor->pieces[0].box;
}

TEST(RankTensor, ADTensorLiesWhereItsMeshSays) {
  Spelling s;
  const Value rows = s.placement("Shard", 0);
  for (const bool axes : {true, false}) {
    EXPECT_EQ(box_of(s.dtensor(s.mesh({3}, {2}, axes), {rows}, {2, 4})), (Box{{8, 0}, {2, 4}}));
    EXPECT_EQ(box_of(s.dtensor(s.mesh({2, 2}, {0, 1}, axes),
                               {s.placement("Replicate"), s.placement("Shard", 1)}, {10, 2})),
              (Box{{0, 2}, {10, 2}}));
  }
  EXPECT_EQ(
      box_of(s.dtensor(s.mesh({2, 2}, {1, 0}), {s.placement("_StridedShard", 0, 2), rows}, {2, 4})),
      (Box{{3, 0}, {2, 4}}));
}

TEST(RankTensor, AMeshMayBeTheTensorOfItsRanks) {
  Spelling s;
  const Value mesh = s.d.object(s.d.global("torch.distributed.device_mesh", "DeviceMesh"));
  s.d.set_attribute(mesh, "mesh", make_torch_tensor(s.d, DType::kI64, {4}, "1"));
  s.d.set_attribute(mesh, "_coordinate_on_dim", s.numbers({3}, true));
  EXPECT_EQ(box_of(s.dtensor(mesh, {s.placement("Shard", 0)}, {1, 4})), (Box{{9, 0}, {1, 4}}));
}

TEST(RankTensor, ARankThatTheMeshLacksHasNothing) {
  Spelling s;
  const Value rows = s.placement("Shard", 0);
  const Value mesh = s.mesh({2}, {0});
  s.d.set_attribute(mesh, "_coordinate_on_dim", s.d.none());
  const RankTensor tensor = read_rank_tensor(s.dtensor(mesh, {rows}, {0})).value();
  EXPECT_EQ(tensor.shape, (Dims{10, 4}));
  EXPECT_TRUE(tensor.pieces.empty());
  const Result<RankTensor> some = read_rank_tensor(s.dtensor(mesh, {rows}, {5, 4}));
  ASSERT_FALSE(some);
  EXPECT_THAT(some.error().message, HasSubstr("at which rank it was"));
}

TEST(RankTensor, ShardsSayTheirPlaces) {
  Spelling s;
  const Value state = s.d.tuple({s.d.list(std::vector<Value>{s.shard({5, 0}, {5, 4})})});
  EXPECT_EQ(box_of(s.wrapped("ShardedTensor", s.numbers({10, 4}), state)), (Box{{5, 0}, {5, 4}}));
}

TEST(RankTensor, APlainTensorIsWhole) {
  Spelling s;
  const RankTensor tensor = read_rank_tensor(s.local({10, 4})).value();
  EXPECT_EQ(tensor.pieces[0].box, Box::whole({10, 4}));
}

TEST(RankTensor, WhatContradictsItselfIsRefused) {
  Spelling s;
  const Value rows = s.placement("Shard", 0);
  const auto refused = [](Value value, Code code, const char* text) {
    const Result<RankTensor> tensor = read_rank_tensor(value);
    ASSERT_FALSE(tensor) << text;
    EXPECT_EQ(tensor.error().code, code) << tensor.error().message;
    EXPECT_THAT(tensor.error().message, HasSubstr(text));
  };
  refused(s.dtensor(s.mesh({2}, {0}), {s.placement("Partial")}, {10, 4}), Code::kUnsupportedFormat,
          "Partial");
  refused(s.dtensor(s.mesh({2}, {0}), {s.placement("Shard", 2)}, {10, 4}), Code::kShapeMismatch,
          "");
  refused(s.dtensor(s.mesh({2}, {0}), {s.placement("Shard", 9)}, {10, 4}), Code::kTorchArchive,
          "which axis");
  refused(s.dtensor(s.mesh({2}, {0}), {rows, rows}, {10, 4}), Code::kShapeMismatch, "");
  refused(s.dtensor(s.mesh({2}, {2}), {rows}, {10, 4}), Code::kShapeMismatch, "");
  refused(s.dtensor(s.mesh({2}, {-1}), {rows}, {10, 4}), Code::kTorchArchive, "at which rank");
  refused(s.dtensor(s.d.none(), {rows}, {10, 4}), Code::kTorchArchive, "");
  refused(s.wrapped("DTensor", s.numbers({10, -4}), s.d.dict()), Code::kTorchArchive, "shape");
  refused(s.wrapped("DTensor", s.numbers({1LL << 40, 1LL << 40}), s.d.dict()), Code::kLimit, "");
  refused(s.wrapped("MyTensor", s.numbers({10, 4}), s.d.dict()), Code::kUnsupportedFormat,
          "MyTensor");
  const Value beyond = s.d.tuple({s.d.list(std::vector<Value>{s.shard({8, 0}, {5, 4})})});
  refused(s.wrapped("ShardedTensor", s.numbers({10, 4}), beyond), Code::kOutOfBounds, "");
  refused(s.wrapped("ShardedTensor", s.numbers({10, 4}), s.d.none()), Code::kTorchArchive,
          "which shards");
}

}  // namespace
}  // namespace shardwright

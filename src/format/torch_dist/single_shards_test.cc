// SPDX-License-Identifier: Apache-2.0
#include "format/torch_dist/single_shards.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>

namespace shardwright {
namespace {

using testing::HasSubstr;

StoredTensor single_shard(std::string name, Dims shape, std::uint32_t file = 0) {
  StoredTensor tensor{
      {std::move(name), DType::kBF16, shape}, ChunkList(shape.size()), Encoding::kTorchItem};
  tensor.chunks.push_back({Box::whole(shape), file, {0, 1000}, {}});
  return tensor;
}

std::string why_not_joined(std::vector<StoredTensor> tensors) {
  Catalog catalog;
  catalog.tensors = std::move(tensors);
  const std::size_t before = catalog.tensors.size();
  const auto joined = join_single_shards(catalog);
  if (joined) return "joined";
  EXPECT_EQ(catalog.tensors.size(), before);
  return joined.error().text();
}

TEST(SingleShards, HalvesAndExpertsBecomeOneTensor) {
  const std::string layer = "decoder.layers.0.mlp.";
  const std::string state = "optimizer.state.exp_avg." + layer;
  Catalog catalog;
  catalog.tensors = {
      single_shard(layer + "linear_fc1.weight_v", {3, 4}, 1),
      single_shard(layer + "linear_fc1.weight_w", {3, 4}, 2),
      single_shard(layer + "linear_fc2.weight", {4, 3}, 3),
      single_shard(layer + "experts.experts.1.linear_fc1.weight_w", {2, 4}, 4),
      single_shard(layer + "experts.experts.0.linear_fc1.weight_w", {2, 4}, 5),
      single_shard(layer + "experts.experts.1.linear_fc1.weight_v", {2, 4}, 6),
      single_shard(layer + "experts.experts.0.linear_fc1.weight_v", {2, 4}, 7),
      single_shard(state + "linear_fc1.weight_w", {3, 4}, 8),
      single_shard(state + "linear_fc1.weight_v", {3, 4}, 9),
  };
  ASSERT_TRUE(join_single_shards(catalog).value());
  ASSERT_EQ(catalog.tensors.size(), 4u);
  const auto place_of = [](const StoredTensor& tensor, std::uint32_t file) {
    for (std::size_t i = 0; i < tensor.chunks.size(); ++i) {
      if (tensor.chunks.file(i) == file) return tensor.chunks.box(i).origin;
    }
    return Dims();
  };
  const StoredTensor& dense = catalog.tensors[0];
  EXPECT_EQ(dense.desc.name, layer + "linear_fc1.weight");
  EXPECT_EQ(dense.desc.shape, (Dims{6, 4}));
  EXPECT_EQ(place_of(dense, 2), (Dims{0, 0}));
  EXPECT_EQ(place_of(dense, 1), (Dims{3, 0}));
  EXPECT_TRUE(check_coverage(dense));
  EXPECT_EQ(catalog.tensors[1].desc.name, layer + "linear_fc2.weight");
  const StoredTensor& experts = catalog.tensors[2];
  EXPECT_EQ(experts.desc.name, layer + "experts.experts.linear_fc1.weight");
  EXPECT_EQ(experts.desc.shape, (Dims{2, 4, 4}));
  EXPECT_EQ(place_of(experts, 5), (Dims{0, 0, 0}));
  EXPECT_EQ(place_of(experts, 7), (Dims{0, 2, 0}));
  EXPECT_EQ(place_of(experts, 6), (Dims{1, 2, 0}));
  EXPECT_TRUE(check_coverage(experts));
  EXPECT_EQ(experts.encoding, Encoding::kTorchItem);
  EXPECT_EQ(experts.chunks[0].strides, (Dims{0, 4, 1}));
  EXPECT_EQ(catalog.tensors[3].desc.name, state + "linear_fc1.weight");
}

TEST(SingleShards, ThoseThatLackAPieceAreRefused) {
  const std::string fc1 = "decoder.layers.0.mlp.linear_fc1.weight";
  const std::string experts = "decoder.layers.0.mlp.experts.experts.";
  EXPECT_EQ(why_not_joined({single_shard(fc1, {6, 4})}), "joined");
  EXPECT_THAT(why_not_joined({single_shard(fc1 + "_w", {3, 4})}),
              HasSubstr("found 1 of its pieces, expected _w and _v"));
  EXPECT_THAT(why_not_joined({single_shard(fc1 + "_w", {3, 4}), single_shard(fc1 + "_v", {2, 4})}),
              HasSubstr("expected bfloat16 (3, 4) as its other pieces"));
  EXPECT_THAT(why_not_joined({single_shard(fc1 + "_w", {3, 4}), single_shard(fc1, {6, 4}),
                              single_shard(fc1 + "_v", {3, 4})}),
              HasSubstr("SW0403"));
  EXPECT_THAT(why_not_joined({single_shard(experts + "0.linear_fc2.weight", {4, 2}),
                              single_shard(experts + "2.linear_fc2.weight", {4, 2})}),
              HasSubstr("found 2 of its pieces, expected one of each expert from 0 to 2"));
  EXPECT_THAT(why_not_joined({single_shard(experts + "0.linear_fc2.weight", {4, 2}),
                              single_shard(experts + "linear_fc2.weight", {1, 4, 2})}),
              HasSubstr("it is stored under another name too"));
  EXPECT_THAT(why_not_joined({single_shard("decoder.layers.mlp.linear_fc1.weight_w", {2, 3, 4}),
                              single_shard("decoder.layers.mlp.linear_fc1.weight_v", {2, 3, 4})}),
              HasSubstr("found pieces that have all layers in one"));
}

}  // namespace
}  // namespace shardwright

// SPDX-License-Identifier: Apache-2.0
#include "layout/shard_contents.h"

#include <gtest/gtest.h>

namespace shardwright {
namespace {

ShardContents contents(std::vector<SampledTensor> tensors) {
  RankSample sample;
  sample.models = {std::move(tensors)};
  return contents_of(sample);
}

TEST(ShardContents, TowersSayNothingAboutTheDecoder) {
  const ShardContents tower =
      contents({{"vision_model.decoder.layers.0.mlp.linear_fc1.weight", {8, 8}},
                {"vision_model.decoder.final_layernorm.weight", {8}},
                {"visual.word_embeddings.weight", {8, 8}},
                {"mtp.layers.0.final_layernorm.weight", {8}}});
  EXPECT_EQ(tower.layers, 0);
  EXPECT_FALSE(tower.has_final_norm);
  EXPECT_FALSE(tower.has_embedding);
  const ShardContents model =
      contents({{"language_model.decoder.layers.0.mlp.linear_fc1.weight", {8, 8}},
                {"language_model.decoder.final_layernorm.weight", {8}},
                {"language_model.embedding.word_embeddings.weight", {64, 8}}});
  EXPECT_EQ(model.layers, 1);
  EXPECT_TRUE(model.has_final_norm);
  EXPECT_EQ(model.vocabulary_rows, 64);
}

TEST(ShardContents, CountsExpertsInEverySpelling) {
  const ShardContents grouped =
      contents({{"decoder.layers.1.mlp.experts.linear_fc1.weight0", {8, 8}},
                {"decoder.layers.1.mlp.experts.linear_fc1.weight11", {8, 8}},
                {"decoder.layers.1.mlp.router.weight", {24, 8}}});
  EXPECT_EQ(grouped.local_experts, 12);
  EXPECT_EQ(grouped.router_rows, 24);
  const ShardContents sequential =
      contents({{"decoder.layers.1.mlp.experts.local_experts.3.linear_fc2.weight", {8, 8}}});
  EXPECT_EQ(sequential.local_experts, 4);
  const ShardContents old = contents({{"decoder.layers.1.mlp.experts.weight1", {8, 64}}});
  EXPECT_TRUE(old.has_experts);
  EXPECT_FALSE(old.local_experts) << "the shape does not tell how many";
  EXPECT_FALSE(
      contents({{"decoder.layers.1.mlp.shared_experts.linear_fc1.weight", {8, 8}}}).has_experts);
}

TEST(ShardContents, AddsTheLayersOfVirtualStages) {
  RankSample sample;
  sample.models = {{{"decoder.layers.0.a", {}}, {"decoder.layers.1.a", {}}},
                   {{"decoder.layers.0.a", {}}}};
  EXPECT_EQ(contents_of(sample).layers, 3);
}

}  // namespace
}  // namespace shardwright

// SPDX-License-Identifier: Apache-2.0
#include "layout/model_head.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "layout/layer_name.h"
#include "layout/legacy_parts.h"
#include "layout/placement.h"
#include "layout/tower.h"

namespace shardwright {
namespace {

using ::testing::SizeIs;

TensorDesc desc(std::string name, Dims shape) { return {std::move(name), DType::kBF16, shape}; }

const std::vector<TensorDesc>& critic() {
  static const std::vector<TensorDesc> tensors = {
      desc("embedding.word_embeddings.weight", {64, 8}),
      desc("decoder.layers.0.mlp.linear_fc2.weight", {8, 4}),
      desc("decoder.layers.1.mlp.linear_fc2.weight", {8, 4}),
      desc("output_layer.weight", {2, 8}),
      desc("output_layer.bias", {2}),
      desc("v_head.summary.weight", {1, 8}),
      desc("rm_head.weight", {1, 8})};
  return tensors;
}

TEST(OutputHeads, AreToldByTheirRows) {
  const OutputHeads heads(critic());
  EXPECT_TRUE(heads.has(desc("output_layer.weight", {2, 8})));
  EXPECT_TRUE(heads.has(desc("optimizer.state.exp_avg.output_layer.bias", {2})));
  EXPECT_FALSE(heads.has(desc("output_layer.weight", {64, 8})));
  EXPECT_TRUE(heads.has(desc("output_layer.weight", {32, 8})));
  EXPECT_FALSE(heads.has(desc("output_layer.weight", {33, 8})));
  EXPECT_FALSE(heads.has(desc("output_layer.weight", {128, 8})));
  EXPECT_FALSE(heads.has(desc("embedding.word_embeddings.weight", {2, 8})));
  EXPECT_FALSE(OutputHeads().has(desc("output_layer.weight", {2, 8})));
}

TEST(OutputHeads, AreWholeOnEveryTensorRankOfTheLastStage) {
  ParallelConfig config;
  config.tensor = 2;
  config.pipeline = 2;
  const auto placement = Placement::make(critic(), config);
  ASSERT_TRUE(placement) << placement.error().message;
  for (const char* whole : {"output_layer.weight", "output_layer.bias", "v_head.summary.weight"}) {
    const auto tensor = std::ranges::find(critic(), whole, &TensorDesc::name);
    const auto chunks = placement->place(*tensor);
    ASSERT_TRUE(chunks) << chunks.error().message;
    ASSERT_THAT(*chunks, SizeIs(1)) << whole;
    EXPECT_EQ(chunks->owner(0), 2) << whole;
    EXPECT_EQ(placement->copies_of(*tensor), 2) << whole;
  }
  // NeMo-Aligner's is cut along its columns.
  const auto cut = placement->place(desc("rm_head.weight", {1, 8}));
  ASSERT_TRUE(cut);
  EXPECT_THAT(*cut, SizeIs(2));
}

TEST(OutputHeads, OfARankAreNoShardsAndNoCopiesOfTheEmbedding) {
  LegacyStage stage{{2, 2, 1, 1, 2}, {1, 1, 0, 1}, {3}, 0, true};
  const std::vector<TensorDesc> tensors = {desc("output_layer.weight", {1, 8})};
  const std::vector<TensorDesc> table = {desc("embedding.word_embeddings.weight", {32, 8})};
  stage.heads = OutputHeads(table);
  const auto parts = legacy_parts(tensors, stage);
  ASSERT_TRUE(parts) << parts.error().message;
  EXPECT_EQ((*parts)[0][0].canonical.name, "output_layer.weight");
  EXPECT_EQ((*parts)[0][0].canonical.shape, Dims({1, 8}));
}

TEST(OutputHeads, AreCutAlongNoAxisAndHaveNoTokens) {
  const std::vector<TensorDesc> table = {
      {"embedding.word_embeddings.weight", DType::kBF16, {64, 8}}};
  const OutputHeads heads(table);
  for (const auto& [rows, is_head] :
       {std::pair(std::int64_t{3}, true), {std::int64_t{64}, false}}) {
    const TensorDesc output{"output_layer.weight", DType::kBF16, {rows, 8}};
    const ShardRule rule = heads.settled(shard_rule(output.name, 2, false), output);
    EXPECT_EQ(rule.axis, is_head ? -1 : 0);
    EXPECT_EQ(rule.vocabulary, !is_head);
    EXPECT_EQ(heads.has_vocabulary_rows(output), !is_head);
  }
  EXPECT_TRUE(heads.has_vocabulary_rows(table.front()));
  EXPECT_FALSE(heads.has_vocabulary_rows(desc("output_layer.weight", {})));
}

TEST(OutputHeads, OfALanguageModelInsideLieBehindItsLayers) {
  EXPECT_TRUE(is_behind_layers("language_model.score.0.weight"));
  EXPECT_TRUE(is_behind_layers("optimizer.state.exp_avg.v_head.summary.weight"));
  EXPECT_FALSE(is_behind_layers("vision_model.score.weight"));
}

TEST(OutputHeads, AreNoTowers) {
  EXPECT_EQ(tower_of("v_head.summary.weight"), "");
  EXPECT_TRUE(has_head_name("language_model.score.weight"));
  EXPECT_FALSE(has_head_name("language_model.scores.weight"));
  EXPECT_FALSE(has_head_name("model.layers.2.mlp.router.classifier.weight"));
  EXPECT_TRUE(has_head_name("v_head.0.weight"));
  EXPECT_FALSE(is_in_head("language_model.score.weight"));
}

}  // namespace
}  // namespace shardwright

// SPDX-License-Identifier: Apache-2.0
#include "layout/legacy_parts.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "layout/early_names.h"
#include "layout/layer_name.h"
#include "layout/legacy_axes.h"
#include "layout/legacy_grid.h"
#include "layout/legacy_shards.h"
#include "shardwright/catalog.h"

namespace shardwright {
namespace {

using ::testing::HasSubstr;

TensorDesc tensor(std::string name, Dims shape) { return {std::move(name), DType::kBF16, shape}; }

std::string shown(const LegacyPart& part) {
  return part.canonical.name + " " + to_string(part.canonical.shape) + " " + to_string(part.box) +
         " @" + std::to_string(part.offset) + " " + to_string(part.strides);
}

std::vector<std::string> parts_of(const std::vector<TensorDesc>& tensors, std::size_t index,
                                  const LegacyStage& stage) {
  const auto parts = legacy_parts(tensors, stage);
  if (!parts) return {parts.error().text()};
  std::vector<std::string> lines;
  for (const LegacyPart& part : (*parts)[index]) lines.push_back(shown(part));
  return lines;
}

using Lines = std::vector<std::string>;

TEST(LegacyParts, GiveLayersTheirGlobalNumber) {
  LegacyStage stage{{2, 2, 1, 1, 2}, {1, 1, 0, 1}, {3}, 0, false};
  EXPECT_EQ(
      parts_of({tensor("decoder.layers.1.self_attention.linear_qkv.weight", {4, 6})}, 0, stage),
      Lines{"decoder.layers.4.self_attention.linear_qkv.weight (8, 6) [4:8, 0:6] @0 (6, 1)"});
  EXPECT_EQ(parts_of({tensor("decoder.layers.0.mlp.linear_fc2.weight", {6, 5})}, 0, stage),
            Lines{"decoder.layers.3.mlp.linear_fc2.weight (6, 10) [0:6, 5:10] @0 (5, 1)"});
  EXPECT_EQ(parts_of({tensor("decoder.final_layernorm.weight", {6})}, 0, stage),
            Lines{"decoder.final_layernorm.weight (6,) [0:6] @0 (1,)"});
  EXPECT_EQ(
      parts_of({tensor("mtp.layers.0.mtp_model_layer.mlp.linear_fc2.weight", {6, 5})}, 0, stage),
      Lines{"mtp.layers.0.transformer_layer.mlp.linear_fc2.weight (6, 10) [0:6, 5:10] @0 "
            "(5, 1)"});
  stage.output_is_embedding = true;
  EXPECT_EQ(parts_of({tensor("output_layer.weight", {7, 6})}, 0, stage),
            Lines{"embedding.word_embeddings.weight (14, 6) [7:14, 0:6] @0 (6, 1)"});
  // Layers for multi-token prediction bring the copy that a tied model multiplies with.
  const std::vector<TensorDesc> both = {tensor("embedding.word_embeddings.weight", {7, 6}),
                                        tensor("output_layer.weight", {7, 6})};
  EXPECT_EQ(parts_of(both, 0, stage),
            Lines{"embedding.word_embeddings.weight (14, 6) [7:14, 0:6] @0 (6, 1)"});
  EXPECT_EQ(parts_of(both, 1, stage), Lines());
  stage.output_is_embedding = false;
  EXPECT_EQ(parts_of(both, 1, stage), Lines{"output_layer.weight (14, 6) [7:14, 0:6] @0 (6, 1)"});
}

TEST(LegacyParts, TakeGatedMlpsApart) {
  const LegacyStage stage{{2, 1, 1, 1, 2}, {1, 0, 0, 1}, {0}, 0, false};
  const std::vector<TensorDesc> gated = {tensor("decoder.layers.0.mlp.linear_fc1.weight", {6, 4}),
                                         tensor("decoder.layers.0.mlp.linear_fc1.bias", {6}),
                                         tensor("decoder.layers.0.mlp.linear_fc2.weight", {4, 3})};
  EXPECT_EQ(parts_of(gated, 0, stage),
            (Lines{"decoder.layers.0.mlp.linear_fc1.weight (12, 4) [3:6, 0:4] @0 (4, 1)",
                   "decoder.layers.0.mlp.linear_fc1.weight (12, 4) [9:12, 0:4] @12 (4, 1)"}));
  EXPECT_EQ(parts_of(gated, 1, stage),
            (Lines{"decoder.layers.0.mlp.linear_fc1.bias (12,) [3:6] @0 (1,)",
                   "decoder.layers.0.mlp.linear_fc1.bias (12,) [9:12] @3 (1,)"}));
  const std::vector<TensorDesc> plain = {tensor("decoder.layers.0.mlp.linear_fc1.weight", {6, 4}),
                                         tensor("decoder.layers.0.mlp.linear_fc2.weight", {4, 6})};
  EXPECT_EQ(parts_of(plain, 0, stage),
            Lines{"decoder.layers.0.mlp.linear_fc1.weight (12, 4) [6:12, 0:4] @0 (4, 1)"});
}

TEST(LegacyParts, NumberExpertsAcrossRanks) {
  const LegacyStage stage{{2, 1, 1, 3, 1}, {1, 0, 2, 0}, {0}, 2, false};
  const std::vector<TensorDesc> grouped = {
      tensor("decoder.layers.0.mlp.experts.linear_fc1.weight1", {6, 4}),
      tensor("decoder.layers.0.mlp.experts.linear_fc2.weight1", {4, 3})};
  EXPECT_EQ(
      parts_of(grouped, 0, stage),
      (Lines{"decoder.layers.0.mlp.experts.experts.linear_fc1.weight (6, 6, 4) [5:6, 0:3, 0:4] @0 "
             "(0, 4, 1)",
             "decoder.layers.0.mlp.experts.experts.linear_fc1.weight (6, 6, 4) [5:6, 3:6, 0:4] @12 "
             "(0, 4, 1)"}));
  const std::vector<TensorDesc> listed = {
      tensor("decoder.layers.0.mlp.experts.local_experts.0.linear_fc2.weight", {4, 3})};
  EXPECT_EQ(
      parts_of(listed, 0, stage),
      Lines{"decoder.layers.0.mlp.experts.experts.linear_fc2.weight (6, 4, 3) [4:5, 0:4, 0:3] "
            "@0 (0, 3, 1)"});
  EXPECT_THAT(
      parts_of({tensor("decoder.layers.0.mlp.experts.linear_fc2.weight2", {4, 3})}, 0, stage)[0],
      HasSubstr("found expert 2, expected 2 on each rank"));
}

TEST(LegacyParts, TakeStackedExpertsApart) {
  const LegacyStage stage{{4, 1, 1, 3, 2}, {1, 0, 2, 1}, {0}, 2, false};
  const std::string mlp = "decoder.layers.0.mlp.experts.";
  const std::string whole = mlp + "experts.";
  const std::vector<TensorDesc> stacked = {
      tensor(mlp + "linear_fc1.weight", {2, 6, 4}), tensor(mlp + "linear_fc1.bias", {2, 6}),
      tensor(mlp + "linear_fc2.weight", {2, 4, 3}), tensor(mlp + "linear_fc2.bias", {2, 4})};
  EXPECT_EQ(parts_of(stacked, 0, stage),
            (Lines{whole + "linear_fc1.weight (6, 12, 4) [4:6, 3:6, 0:4] @0 (24, 4, 1)",
                   whole + "linear_fc1.weight (6, 12, 4) [4:6, 9:12, 0:4] @12 (24, 4, 1)"}));
  EXPECT_EQ(parts_of(stacked, 1, stage),
            (Lines{whole + "linear_fc1.bias (6, 12) [4:6, 3:6] @0 (6, 1)",
                   whole + "linear_fc1.bias (6, 12) [4:6, 9:12] @3 (6, 1)"}));
  EXPECT_EQ(parts_of(stacked, 2, stage),
            Lines{whole + "linear_fc2.weight (6, 4, 6) [4:6, 0:4, 3:6] @0 (12, 3, 1)"});
  EXPECT_EQ(parts_of(stacked, 3, stage),
            Lines{whole + "linear_fc2.bias (6, 4) [4:6, 0:4] @0 (4, 1)"});
  EXPECT_THAT(parts_of({tensor(mlp + "linear_fc2.weight", {3, 4, 3})}, 0, stage)[0],
              HasSubstr("found shape (3, 4, 3), expected 3 axes and the rank's 2 experts"));
}

// Drafts may have experts of their own: here nine on three ranks, where the model has six.
TEST(LegacyParts, CountExpertsByTheRouterBesideThem) {
  const LegacyStage stage{{1, 1, 1, 3, 1}, {0, 0, 2, 0}, {0}, 2, false};
  const std::string mlp = "dspark.decoder.layers.1.inner_layer.mlp.";
  std::vector<TensorDesc> tensors = {tensor(mlp + "experts.linear_fc2.weight2", {4, 3}),
                                     tensor(mlp + "router.weight", {9, 4}),
                                     tensor("decoder.layers.1.mlp.router.weight", {6, 4})};
  EXPECT_EQ(
      parts_of(tensors, 0, stage),
      Lines{mlp + "experts.experts.linear_fc2.weight (9, 4, 3) [8:9, 0:4, 0:3] @0 (0, 3, 1)"});
  tensors[1].shape[0] = 8;
  EXPECT_THAT(parts_of(tensors, 0, stage)[0], HasSubstr("found expert 2, expected 2"))
      << "no number that three ranks share out";
  tensors[1].shape[0] = 0;
  EXPECT_THAT(parts_of(tensors, 0, stage)[0], HasSubstr("found expert 2, expected 2"));
}

TEST(LegacyParts, ReadTheMemoryOfOldGroupedExperts) {
  const LegacyStage stage{{2, 1, 1, 1, 2}, {1, 0, 0, 1}, {0}, 2, false};
  const std::vector<TensorDesc> old = {tensor("decoder.layers.0.mlp.experts.weight1", {5, 12}),
                                       tensor("decoder.layers.0.mlp.experts.weight2", {6, 5})};
  const std::string first = "decoder.layers.0.mlp.experts.experts.linear_fc1.weight (2, 12, 5) ";
  EXPECT_EQ(
      parts_of(old, 0, stage),
      (Lines{first + "[0:1, 3:6, 0:5] @0 (0, 1, 6)", first + "[0:1, 9:12, 0:5] @3 (0, 1, 6)",
             first + "[1:2, 3:6, 0:5] @30 (0, 1, 6)", first + "[1:2, 9:12, 0:5] @33 (0, 1, 6)"}));
  const std::string second = "decoder.layers.0.mlp.experts.experts.linear_fc2.weight (2, 5, 6) ";
  EXPECT_EQ(parts_of(old, 1, stage), (Lines{second + "[0:1, 0:5, 3:6] @0 (0, 1, 5)",
                                            second + "[1:2, 0:5, 3:6] @15 (0, 1, 5)"}));
}

// Two heads of two rows on rank 1 of two: [q0 k0 v0 q1 k1 v1] is what each order means.
TEST(LegacyParts, PutOldQueryKeyValueOrdersRight) {
  LegacyStage stage{{2, 1, 1, 1, 2}, {1, 0, 0, 1}, {0}, 0, false, QkvOrder::kThreeFirst, 2};
  const std::vector<TensorDesc> qkv = {
      tensor("decoder.layers.0.self_attention.linear_qkv.weight", {12, 4}),
      tensor("decoder.layers.0.self_attention.linear_qkv.layer_norm_weight", {4})};
  const std::string name = "decoder.layers.0.self_attention.linear_qkv.weight (24, 4) ";
  EXPECT_EQ(parts_of(qkv, 0, stage),
            (Lines{name + "[12:14, 0:4] @0 (4, 1)", name + "[14:16, 0:4] @16 (4, 1)",
                   name + "[16:18, 0:4] @32 (4, 1)", name + "[18:20, 0:4] @8 (4, 1)",
                   name + "[20:22, 0:4] @24 (4, 1)", name + "[22:24, 0:4] @40 (4, 1)"}));
  stage.qkv_order = QkvOrder::kByHead;
  EXPECT_EQ(parts_of(qkv, 0, stage),
            (Lines{name + "[12:14, 0:4] @0 (12, 1)", name + "[14:16, 0:4] @4 (12, 1)",
                   name + "[16:18, 0:4] @8 (12, 1)", name + "[18:20, 0:4] @24 (12, 1)",
                   name + "[20:22, 0:4] @28 (12, 1)", name + "[22:24, 0:4] @32 (12, 1)"}));
  EXPECT_THAT(parts_of(qkv, 1, stage)[0], HasSubstr("layer_norm_weight (4,) [0:4]"));
  stage.heads_per_rank = 5;
  EXPECT_THAT(parts_of(qkv, 0, stage)[0], HasSubstr("expected those of 5 heads"));
}

TEST(MainLayers, AreNotThoseOfAVisionTower) {
  const std::vector<TensorDesc> tensors = {tensor("vision_model.decoder.layers.23.x", {1}),
                                           tensor("mtp.layers.7.x", {1}),
                                           tensor("language_model.decoder.layers.4.x", {1})};
  EXPECT_EQ(count_main_layers(tensors), 5);
  EXPECT_EQ(count_main_layers({}), 0);
}

TEST(EarlyNames, BecomeThoseOfToday) {
  for (const auto& [early, core] : std::vector<std::pair<const char*, const char*>>{
           {"language_model.embedding.word_embeddings.weight", "embedding.word_embeddings.weight"},
           {"language_model.encoder.layers.3.self_attention.query_key_value.bias",
            "decoder.layers.3.self_attention.linear_qkv.bias"},
           {"language_model.transformer.layers.0.attention.dense.weight",
            "decoder.layers.0.self_attention.linear_proj.weight"},
           {"language_model.encoder.layers.1.input_norm.weight",
            "decoder.layers.1.self_attention.linear_qkv.layer_norm_weight"},
           {"language_model.encoder.layers.1.post_attention_layernorm.bias",
            "decoder.layers.1.mlp.linear_fc1.layer_norm_bias"},
           {"language_model.encoder.layers.1.mlp.dense_4h_to_h.weight",
            "decoder.layers.1.mlp.linear_fc2.weight"},
           {"language_model.encoder.final_layernorm.weight", "decoder.final_layernorm.weight"},
           {"language_model.output_layer.weight", "output_layer.weight"},
           {"word_embeddings_for_head.weight", "embedding.word_embeddings.weight"},
           {"language_model.embedding.word_embeddings.norm.bias",
            "embedding.word_embeddings_layernorm.bias"},
           {"language_model.encoder.layers.1.mlp.linear1.bias",
            "decoder.layers.1.mlp.linear_fc1.bias"},
           {"language_model.encoder.layers.1.mlp.linear2.weight",
            "decoder.layers.1.mlp.linear_fc2.weight"},
           {"language_model.encoder.layers.1.input_layernorm.scale",
            "decoder.layers.1.self_attention.linear_qkv.layer_norm_weight"},
           {"language_model.encoder.layers.1.post_attention_layernorm.scale",
            "decoder.layers.1.mlp.linear_fc1.layer_norm_weight"},
           {"language_model.encoder.final_layernorm.scale", "decoder.final_layernorm.weight"},
           {"vision_model.odd", "vision_model.odd"}}) {
    EXPECT_EQ(core_name_of_early(early), core);
  }
}

TEST(EarlyNames, ThatNoRuleHasAreTold) {
  for (const char* name : {"language_model.embedding.word_embeddings.weight",
                           "language_model.embedding.position_embeddings.weight",
                           "language_model.encoder.layers.1.mlp.linear1.weight",
                           "language_model.encoder.final_layernorm.weight"}) {
    EXPECT_TRUE(is_early_name(name)) << name;
  }
  for (const char* name :
       {"language_model.embedding.projection.weight",
        "language_model.encoder.layers.1.mlp.w1.weight", "language_model.encoder.other.weight",
        "decoder.layers.1.mlp.linear_fc1.weight"}) {
    EXPECT_FALSE(is_early_name(name)) << name;
  }
}

TEST(LegacyParts, FindTheGateBehindWhereItIs) {
  LegacyStage stage{{2, 1, 1, 1, 2}, {1, 0, 0, 1}, {0}, 0, false};
  const std::string mlp = "decoder.layers.0.mlp.";
  const std::vector<TensorDesc> tensors = {tensor(mlp + "linear_fc1.weight", {4, 3}),
                                           tensor(mlp + "linear_fc2.weight", {3, 2})};
  EXPECT_EQ(parts_of(tensors, 0, stage),
            (Lines{mlp + "linear_fc1.weight (8, 3) [2:4, 0:3] @0 (3, 1)",
                   mlp + "linear_fc1.weight (8, 3) [6:8, 0:3] @6 (3, 1)"}));
  stage.gate_is_second = true;
  EXPECT_EQ(parts_of(tensors, 0, stage),
            (Lines{mlp + "linear_fc1.weight (8, 3) [6:8, 0:3] @0 (3, 1)",
                   mlp + "linear_fc1.weight (8, 3) [2:4, 0:3] @6 (3, 1)"}));
}

TEST(LegacyParts, TakeMixersApart) {
  const LegacyStage stage{{2, 1, 1, 1, 2}, {1, 0, 0, 1}, {0}, 0, false};
  const std::string mixer = "decoder.layers.0.mixer.";
  const std::vector<TensorDesc> tensors = {
      tensor(mixer + "in_proj.weight", {16, 5}), tensor(mixer + "conv1d_weight", {10, 1, 4}),
      tensor(mixer + "A_log", {2}), tensor(mixer + "out_proj.weight", {5, 4})};
  EXPECT_EQ(parts_of(tensors, 0, stage),
            (Lines{mixer + "in_proj.weight.z (8, 5) [4:8, 0:5] @0 (5, 1)",
                   mixer + "in_proj.weight.x (8, 5) [4:8, 0:5] @20 (5, 1)",
                   mixer + "in_proj.weight.B (6, 5) [3:6, 0:5] @40 (5, 1)",
                   mixer + "in_proj.weight.C (6, 5) [3:6, 0:5] @55 (5, 1)",
                   mixer + "in_proj.weight.dt (4, 5) [2:4, 0:5] @70 (5, 1)"}));
  EXPECT_EQ(parts_of(tensors, 1, stage)[2],
            mixer + "conv1d.weight.C (6, 1, 4) [3:6, 0:1, 0:4] @28 (4, 4, 1)");
}

// Six rows of queries and four of keys and values, on rank 1 of two.
TEST(LegacyParts, TakeFusedLatentProjectionsApart) {
  const LegacyStage stage{{2, 1, 1, 1, 2}, {1, 0, 0, 1}, {2}, 0, false};
  const std::string attention = "decoder.layers.0.self_attention.";
  std::vector<TensorDesc> tensors = {
      tensor(attention + "linear_qkv_down_proj.layer_norm_weight", {3}),
      tensor(attention + "linear_qkv_down_proj.weight", {5, 3}),
      tensor(attention + "linear_q_up_proj.weight", {8, 6})};
  EXPECT_EQ(parts_of(tensors, 0, stage),
            Lines{"decoder.layers.2.input_layernorm.weight (3,) [0:3] @0 (1,)"});
  const std::string global = "decoder.layers.2.self_attention.";
  EXPECT_EQ(parts_of(tensors, 1, stage),
            (Lines{global + "linear_q_down_proj.weight (6, 3) [3:6, 0:3] @0 (3, 1)",
                   global + "linear_kv_down_proj.weight (4, 3) [2:4, 0:3] @9 (3, 1)"}));
  const std::string lost = "found 5 rows beside a linear_q_up_proj of ";
  for (const std::int64_t columns : {7, 10, 12, 0}) {
    tensors[2].shape = {8, columns};
    EXPECT_THAT(parts_of(tensors, 1, stage)[0],
                HasSubstr(lost + std::to_string(columns) + " columns"));
  }
  tensors.pop_back();
  EXPECT_THAT(parts_of(tensors, 1, stage)[0], HasSubstr(lost + "0 columns"));
}

TEST(LegacyParts, NameNormsOfPlainModulesAsTorchDistDoes) {
  const LegacyStage stage{{1, 1, 1, 1, 1}, {}, {0}, 0, false};
  const std::vector<TensorDesc> plain = {
      tensor("decoder.layers.0.input_layernorm.weight", {4}),
      tensor("decoder.layers.0.self_attention.linear_qkv.weight", {6, 4}),
      tensor("decoder.layers.0.pre_mlp_layernorm.weight", {4})};
  EXPECT_THAT(parts_of(plain, 0, stage)[0],
              HasSubstr("decoder.layers.0.self_attention.linear_qkv.layer_norm_weight"));
  EXPECT_THAT(parts_of(plain, 2, stage)[0],
              HasSubstr("decoder.layers.0.mlp.linear_fc1.layer_norm_weight"));
  const std::vector<TensorDesc> fused = {
      tensor("decoder.layers.0.self_attention.linear_qkv.weight", {6, 4}),
      tensor("decoder.layers.0.pre_mlp_layernorm.weight", {4})};
  EXPECT_THAT(parts_of(fused, 1, stage)[0], HasSubstr("decoder.layers.0.pre_mlp_layernorm.weight"));
}

// Shards of every rank, taken apart again, cover the model once per replica and come back to the
// boxes that they were made of.
RC_GTEST_PROP(LegacyShards, AreWhatPartsUndo, ()) {
  const std::int64_t tp = *rc::gen::element<std::int64_t>(1, 2, 4);
  const std::int64_t etp = *rc::gen::element<std::int64_t>(1, 2, 4);
  const std::int64_t ep = *rc::gen::element<std::int64_t>(1, 2, 3);
  const std::int64_t pp = *rc::gen::inRange<std::int64_t>(1, 4);
  const std::int64_t vpp = pp > 1 ? *rc::gen::inRange<std::int64_t>(1, 3) : 1;
  RC_PRE(tp % etp == 0);
  const ParallelConfig config{tp, pp, vpp, ep, etp};
  const std::int64_t layers = pp * vpp * *rc::gen::inRange<std::int64_t>(1, 3);
  LegacyModules modules;
  modules.grouped_experts = *rc::gen::arbitrary<bool>();
  modules.plain_norms = *rc::gen::arbitrary<bool>();
  modules.fused_latent = *rc::gen::arbitrary<bool>();
  const std::int64_t width = 4 * tp;
  const std::int64_t first = *rc::gen::arbitrary<bool>() ? 2 * width : width;
  std::vector<TensorDesc> canonical = {tensor("embedding.word_embeddings.weight", {8 * tp, 6})};
  for (std::int64_t layer = 0; layer < layers; ++layer) {
    const std::string prefix = "decoder.layers." + std::to_string(layer) + ".";
    const std::string experts = prefix + "mlp.experts.experts.";
    canonical.push_back(tensor(prefix + "self_attention.linear_qkv.layer_norm_weight", {6}));
    canonical.push_back(tensor(prefix + "self_attention.linear_qkv.weight", {width, 6}));
    if (layer % 2 == 1 && !modules.plain_norms) {
      const std::string latent = prefix + "self_attention.";
      canonical.resize(canonical.size() - 2);
      canonical.push_back(tensor(prefix + "input_layernorm.weight", {6}));
      canonical.push_back(tensor(latent + "linear_q_down_proj.weight", {2 * tp, 6}));
      canonical.push_back(tensor(latent + "linear_q_up_proj.weight", {width, 2 * tp}));
      canonical.push_back(tensor(latent + "linear_kv_down_proj.weight", {3 * tp, 6}));
    }
    canonical.push_back(tensor(prefix + "mlp.router.weight", {2 * ep, 6}));
    canonical.push_back(tensor(experts + "linear_fc1.weight", {2 * ep, first, 6}));
    canonical.push_back(tensor(experts + "linear_fc2.weight", {2 * ep, 6, width}));
  }
  canonical.push_back(tensor("output_layer.weight", {8 * tp, 6}));

  std::vector<StoredTensor> stored;
  for (const TensorDesc& desc : canonical) stored.push_back({desc, ChunkList(desc.shape.size())});
  const auto grid = legacy_grid(config).value();
  for (const LegacyRank& rank : grid) {
    const auto splits = StackSplits::of_one(PipelineSplit::make(layers, config).value());
    const auto stages = stage_contents(config, splits, rank.pipeline, false, false);
    for (const StageContents& stage : stages) {
      const std::vector<LegacyShard> shards = legacy_shards(canonical, config, stage, modules);
      std::vector<TensorDesc> own;
      for (const LegacyShard& shard : shards) own.push_back(shard.desc);
      const LegacyStage place{
          config, rank, {stage.layers.first, stage.encoder_layers.first}, 2, false};
      const auto parts = legacy_parts(own, place).value();
      for (std::size_t i = 0; i < shards.size(); ++i) {
        RC_ASSERT(parts[i].size() == shards[i].runs.size());
        for (std::size_t r = 0; r < parts[i].size(); ++r) {
          const ShardRun& run = shards[i].runs[r];
          RC_ASSERT(parts[i][r].canonical.name == canonical[run.canonical].name);
          RC_ASSERT(parts[i][r].canonical.shape == canonical[run.canonical].shape);
          RC_ASSERT(parts[i][r].box == box_of(run, rank));
          stored[run.canonical].chunks.push_back({box_of(run, rank), 0, {}, {}});
        }
      }
    }
  }
  for (const StoredTensor& all : stored) RC_ASSERT(check_coverage(all).has_value());
}

// T5's: as deep as it likes on either side.
TEST(LegacyShards, OfTwoStacksAreSharedOutEachByItself) {
  ParallelConfig config;
  config.pipeline = 2;
  std::vector<TensorDesc> canonical;
  for (const auto& [stack, layers] : {std::pair("encoder", 4), std::pair("decoder", 2)}) {
    for (int layer = 0; layer < layers; ++layer) {
      canonical.push_back(
          {fmt::format("{}.layers.{}.input_layernorm.weight", stack, layer), DType::kF32, {4}});
    }
  }
  canonical.push_back(
      {"encoder_relative_pos_emb.relative_attention_bias.weight", DType::kF32, {4}});
  const StackSplits splits{PipelineSplit::make(2, config).value(),
                           PipelineSplit::make(4, config).value()};
  for (const std::int64_t pipeline : {0, 1}) {
    const StageContents stage = stage_contents(config, splits, pipeline, false, false).front();
    std::string held;
    for (const LegacyShard& shard : legacy_shards(canonical, config, stage, {})) {
      held += fmt::format("{} of {}; ", shard.desc.name.substr(0, 16),
                          canonical[shard.runs[0].canonical].name.substr(0, 16));
    }
    const std::string first = std::to_string(2 * pipeline);
    const std::string second = std::to_string(2 * pipeline + 1);
    EXPECT_EQ(held, "encoder.layers.0 of encoder.layers." + first +
                        "; encoder.layers.1 of encoder.layers." + second +
                        "; decoder.layers.0 of decoder.layers." + std::to_string(pipeline) +
                        "; encoder_relative of encoder_relative; ");
  }
}

// What Megatron-Core puts where, as "embedding norm prediction end" of each chunk.
std::string chunks_of(std::vector<std::int64_t> layers, bool has_mtp,
                      std::optional<std::int64_t> prediction = std::nullopt) {
  ParallelConfig config;
  config.pipeline = 2;
  config.virtual_pipeline = std::ssize(layers) / 2;
  StackSplits splits = StackSplits::of_one(PipelineSplit::of_counts(layers, config.pipeline));
  splits.prediction_chunk = prediction;
  std::string text;
  for (std::int64_t v = 0; v < config.virtual_pipeline; ++v) {
    for (std::int64_t rank = 0; rank < config.pipeline; ++rank) {
      const StageContents stage = stage_contents(config, splits, rank, has_mtp, false).at(v);
      text += stage.has_embedding ? 'E' : '-';
      text += stage.has_final_norm ? 'n' : '-';
      text += stage.has_prediction ? 'm' : '-';
      text += stage.has_end ? "L|" : "-|";
    }
  }
  return text;
}

TEST(StageContents, HaveTheFinalNormWherePredictionLayersTakeIt) {
  EXPECT_EQ(chunks_of({1, 2}, false), "E---|-n-L|");
  EXPECT_EQ(chunks_of({1, 2}, true), "E---|EnmL|");
  EXPECT_EQ(chunks_of({1, 2, 1, 0}, false), "E---|----|----|-n-L|");
  EXPECT_EQ(chunks_of({1, 2, 1, 0}, true), "E---|----|-n--|E-mL|");
  EXPECT_EQ(chunks_of({1, 3, 0, 0}, true, 2), "E---|-n--|E-m-|---L|");
}

TEST(LegacyNames, GoBackToWhatTheyWere) {
  struct Case {
    const char* legacy;
    LegacyModules modules;
  };
  const std::vector<Case> cases = {
      {"decoder.layers.2.self_attention.linear_qkv.layer_norm_weight", {}},
      {"decoder.layers.2.input_layernorm.weight", {true, false, true}},
      {"decoder.layers.2.pre_mlp_layernorm.bias", {true, false, true}},
      {"decoder.layers.0.mlp.experts.linear_fc1.weight3", {false, true, true}},
      {"decoder.layers.0.mlp.experts.linear_fc1.bias12", {false, true, true}},
      {"decoder.layers.0.mlp.experts.local_experts.3.linear_fc1.weight", {false, false, true}},
      {"mtp.layers.0.mtp_model_layer.mlp.experts.linear_fc2.weight0", {false, true, true}},
      {"mtp.layers.0.transformer_layer.mlp.linear_fc2.weight", {false, true, false}},
      {"mtp.layers.0.eh_proj.weight", {}},
      {"decoder.layers.0.mixer.conv1d.weight", {}},
      {"decoder.layers.0.mixer.conv1d_weight", {.plain_convolution = true}},
      {"decoder.layers.0.mixer.conv1d_bias", {.plain_convolution = true}},
      {"embedding.word_embeddings.weight", {}},
      {"vision_model.decoder.layers.3.mlp.linear_fc1.weight", {}},
  };
  for (const Case& c : cases) {
    const CanonicalName canonical = canonical_from_legacy(c.legacy, {5, 3}, c.modules.plain_norms);
    EXPECT_EQ(legacy_from_canonical(canonical.name, {5, 3}, canonical.expert, c.modules), c.legacy)
        << canonical.name;
  }
  EXPECT_EQ(canonical_from_legacy("vision_model.decoder.layers.3.x", {5, 3}, false).name,
            "vision_model.decoder.layers.3.x")
      << "pipeline stages don't share out a vision tower";
  EXPECT_EQ(canonical_from_legacy("decoder.layers.1.x", {5, 3}, false).name, "decoder.layers.6.x");
  EXPECT_EQ(canonical_from_legacy("encoder.layers.1.x", {5, 3}, false).name, "encoder.layers.4.x");
}

RankSample sample_of(std::string folder, std::vector<std::string> names) {
  RankSample sample;
  sample.folder = std::move(folder);
  auto& tensors = sample.models.emplace_back();
  for (std::string& name : names) tensors.push_back({std::move(name), {4, 4}});
  return sample;
}

const std::string kEmbedding = "embedding.word_embeddings.weight";
const std::string kNorm = "decoder.final_layernorm.weight";
const std::string kExpertWeight = "decoder.layers.0.mlp.experts.linear_fc1.weight0";

LegacyAxesEvidence two_numbers(std::vector<std::string> first, std::vector<std::string> second) {
  LegacyAxesEvidence evidence;
  evidence.folders = {{0, 0}, {0, 1}};
  evidence.samples = {sample_of("mp_rank_00_000", std::move(first)),
                      sample_of("mp_rank_00_001", std::move(second))};
  evidence.run.is_present = true;
  return evidence;
}

TEST(LegacyAxes, AreSettledByContents) {
  const LegacyAxesEvidence experts =
      two_numbers({kEmbedding, kExpertWeight, kNorm}, {kEmbedding, kExpertWeight, kNorm});
  EXPECT_EQ(settle_legacy_axes(experts)->config.expert, 2);
  EXPECT_EQ(settle_legacy_axes(experts)->ranks[1], (LegacyRank{0, 0, 1, 0}));
  const LegacyAxesEvidence stages = two_numbers({kEmbedding}, {kNorm});
  EXPECT_EQ(settle_legacy_axes(stages)->config.pipeline, 2);
  LegacyAxesEvidence contradicted = experts;
  contradicted.run.sizes.pipeline = 2;
  EXPECT_EQ(settle_legacy_axes(contradicted).error().code, Code::kLegacyLayout);
  contradicted = stages;
  contradicted.run.sizes.expert = 2;
  EXPECT_EQ(settle_legacy_axes(contradicted).error().code, Code::kLegacyLayout);
}

TEST(LegacyAxes, CopiesOfAWholeModelAreExpertRanksOfNoExperts) {
  LegacyAxesEvidence copies = two_numbers({kEmbedding, kNorm}, {kEmbedding, kNorm});
  EXPECT_EQ(settle_legacy_axes(copies)->config.expert, 2);
  copies.run.sizes.expert = 2;
  EXPECT_EQ(settle_legacy_axes(copies)->config.expert, 2);
  copies.run.sizes = {};
  copies.run.sizes.pipeline = 2;
  EXPECT_EQ(settle_legacy_axes(copies).error().code, Code::kLegacyLayout);
}

LegacyAxesEvidence without_arguments(const std::vector<std::vector<std::int64_t>>& folders) {
  LegacyAxesEvidence evidence;
  evidence.folders = folders;
  for (const auto& numbers : folders) {
    std::string name = fmt::format("mp_rank_{:02}", numbers[0]);
    for (std::size_t i = 1; i < numbers.size(); ++i) name += fmt::format("_{:03}", numbers[i]);
    evidence.samples.push_back(sample_of(name, {kEmbedding, kExpertWeight, kNorm}));
  }
  return evidence;
}

TEST(LegacyAxes, FoldersTellExpertTensorSizeWhereArgumentsAreNone) {
  using Told = std::pair<std::int64_t, bool>;  // the size, and whether it is open
  const auto size_of = [](const LegacyAxesEvidence& evidence) -> Told {
    const auto axes = settle_legacy_axes(evidence);
    EXPECT_TRUE(axes) << axes.error().text();
    for (const LegacyRank& rank : axes->ranks) {
      EXPECT_EQ(rank.expert_tensor, rank.tensor % axes->config.expert_tensor);
    }
    return Told(axes->config.expert_tensor, axes->is_expert_tensor_open);
  };
  LegacyAxesEvidence one = without_arguments({{0, 0}, {1, 1}});
  EXPECT_EQ(size_of(one), Told(1, false));
  EXPECT_EQ(size_of(without_arguments({{0, 0}, {0, 1}, {1, 0}, {1, 1}})), Told(2, false));
  EXPECT_EQ(size_of(without_arguments({{0, 0}, {1, 0}, {2, 1}, {3, 1}})), Told(2, false));
  EXPECT_EQ(size_of(without_arguments({{0, 0}, {1, 1}, {2, 0}, {3, 1}})), Told(1, false));
  EXPECT_EQ(size_of(without_arguments({{0, 0, 0}, {0, 1, 0}, {1, 0, 1}, {1, 1, 1}})),
            Told(1, false));
  EXPECT_EQ(size_of(without_arguments({{0}, {1}})), Told(2, true)) << "no name tells";
  one.run.is_present = true;
  EXPECT_EQ(size_of(one), Told(2, false)) << "Megatron takes TP where no size is named";
  one.run.sizes.expert_tensor = 1;
  EXPECT_EQ(size_of(one), Told(1, false));
}

TEST(LegacyAxes, AreNotGuessedWhereNothingTells) {
  const LegacyAxesEvidence open = two_numbers({"adapter.weight"}, {"adapter.weight"});
  const auto axes = settle_legacy_axes(open);
  ASSERT_FALSE(axes);
  EXPECT_NE(axes.error().message.find("shardwright diagnose"), std::string::npos);
}

TEST(LegacyAxes, RefuseMixesAndOverwrittenFiles) {
  LegacyAxesEvidence evidence;
  EXPECT_EQ(settle_legacy_axes(evidence).error().code, Code::kLegacyLayout);
  evidence.folders = {{0}, {1, 0}};
  EXPECT_EQ(settle_legacy_axes(evidence).error().code, Code::kLegacyLayout);
  evidence.folders = {{0, 0, 0, 0}};
  EXPECT_EQ(settle_legacy_axes(evidence).error().code, Code::kLegacyLayout);
  evidence.folders = {{0}, {3}};
  evidence.run.sizes.tensor = 2;
  EXPECT_EQ(settle_legacy_axes(evidence).error().code, Code::kLegacyLayout);
  evidence.run.sizes.tensor = 4;
  EXPECT_EQ(settle_legacy_axes(evidence)->config.tensor, 4) << "folders may be missing";
  evidence.run.sizes.expert_tensor = 8;
  EXPECT_EQ(settle_legacy_axes(evidence).error().code, Code::kNotDivisible);
}

// Rank 1 of two: each part of the projection and of the convolution is cut for itself.
TEST(LegacyParts, TakeGatedDeltaNetsApart) {
  const LegacyStage stage{{2, 1, 1, 1, 2}, {1, 0, 0, 1}, {0}, 0, false};
  const std::string net = "decoder.layers.0.self_attention.";
  const std::vector<TensorDesc> tensors = {
      tensor(net + "in_proj.weight", {12, 5}), tensor(net + "conv1d.weight", {7, 1, 4}),
      tensor(net + "A_log", {1}), tensor(net + "out_proj.weight", {5, 3})};
  const std::string in = net + "in_proj.weight.";
  EXPECT_EQ(
      parts_of(tensors, 0, stage),
      (Lines{in + "query (4, 5) [2:4, 0:5] @0 (5, 1)", in + "key (4, 5) [2:4, 0:5] @10 (5, 1)",
             in + "value (6, 5) [3:6, 0:5] @20 (5, 1)", in + "z (6, 5) [3:6, 0:5] @35 (5, 1)",
             in + "beta (2, 5) [1:2, 0:5] @50 (5, 1)", in + "alpha (2, 5) [1:2, 0:5] @55 (5, 1)"}));
  const std::string convolution = net + "conv1d.weight.";
  EXPECT_EQ(parts_of(tensors, 1, stage),
            (Lines{convolution + "query (4, 1, 4) [2:4, 0:1, 0:4] @0 (4, 4, 1)",
                   convolution + "key (4, 1, 4) [2:4, 0:1, 0:4] @8 (4, 4, 1)",
                   convolution + "value (6, 1, 4) [3:6, 0:1, 0:4] @16 (4, 4, 1)"}));
}

TEST(LegacyParts, KeepTheNameOfAHybridPredictionLayer) {
  const LegacyStage stage{{1, 1, 1, 1, 1}, {0, 0, 0, 0}, {0}, 0, false};
  const std::string name = "mtp.layers.0.mtp_model_layer.layers.1.mlp.linear_fc2.weight";
  EXPECT_EQ(parts_of({tensor(name, {6, 5})}, 0, stage),
            Lines{name + " (6, 5) [0:6, 0:5] @0 (5, 1)"});
}

}  // namespace
}  // namespace shardwright

// SPDX-License-Identifier: Apache-2.0
#include "layout/placement.h"

#include <gtest/gtest.h>

#include <set>

#include "layout/hybrid_stages.h"
#include "layout/layer_name.h"
#include "layout/shard_rule.h"
#include "shardwright/catalog.h"

namespace shardwright {
namespace {

TEST(LayerName, SplitsStackedAndNumberedNames) {
  const auto numbered = split_layer_name("decoder.layers.7.mlp.router.weight");
  ASSERT_TRUE(numbered);
  EXPECT_EQ(numbered->stack, "decoder.layers");
  EXPECT_EQ(numbered->index, 7);
  EXPECT_EQ(numbered->rest, "mlp.router.weight");
  const auto stacked = split_layer_name("optimizer.state.exp_avg.decoder.layers.mlp.router.weight");
  ASSERT_TRUE(stacked);
  EXPECT_FALSE(stacked->index);
  EXPECT_EQ(stacked->rest, "mlp.router.weight");
  EXPECT_FALSE(split_layer_name("embedding.word_embeddings.weight"));
  EXPECT_FALSE(split_layer_name("prelayers.0.x"));
  // Nobody can count the layers up to that one.
  EXPECT_FALSE(split_layer_name("decoder.layers.9223372036854775807.x").value().index);
}

TEST(PipelineSplit, FollowsMegatronsOffsets) {
  const auto stages = [](std::int64_t layers, const ParallelConfig& config) {
    const PipelineSplit split = PipelineSplit::make(layers, config).value();
    std::string text;
    for (std::int64_t layer = 0; layer < layers; ++layer) {
      text += std::to_string(split.stage_of(layer));
    }
    return text;
  };
  EXPECT_EQ(stages(4, {.pipeline = 2}), "0011");
  EXPECT_EQ(stages(8, {.pipeline = 2, .virtual_pipeline = 2}), "00110011");
  EXPECT_EQ(stages(3, {.pipeline = 2}), "001");
  EXPECT_EQ(stages(10, {.pipeline = 4}), "0001112223" + std::string()) << "9 + 1";
  EXPECT_EQ(stages(61, {.pipeline = 8}).back(), '7');
  EXPECT_EQ(PipelineSplit::make(6, {.pipeline = 4, .virtual_pipeline = 2}).error().code,
            Code::kNotDivisible);
  EXPECT_EQ(PipelineSplit::make(2, {.pipeline = 3}).error().code, Code::kNotDivisible);
}

// The rule by trying every count of the last stage.
std::int64_t nearest_last_stage(std::int64_t layers, std::int64_t pipeline) {
  const std::int64_t others = pipeline - 1;
  std::int64_t best = 0;
  for (std::int64_t last = 1; last <= layers - others; ++last) {
    if ((layers - last) % others != 0) continue;
    const auto distance = [&](std::int64_t count) { return std::abs(count * pipeline - layers); };
    if (best == 0 || distance(last) < distance(best)) best = last;
  }
  return best;
}

TEST(HybridStages, BeginWhereTheSplitDoes) {
  const auto staged = [](std::string_view pattern, std::int64_t layers,
                         const ParallelConfig& config) {
    return with_stages(pattern, layers, PipelineSplit::make(layers, config).value());
  };
  EXPECT_EQ(staged("M*G|-", 4, {}), "M*G-");
  EXPECT_EQ(staged("M*G|-", 4, {.pipeline = 2}), "M*|G-");
  EXPECT_EQ(staged("M*G-/MM/MM", 4, {.pipeline = 2}), "M*|G-/MM/MM");
  EXPECT_EQ(staged("M*|G-", 4, {.pipeline = 2, .virtual_pipeline = 2}), "M|*|G|-");
  EXPECT_EQ(staged("M*G-M", 5, {.pipeline = 2}), "M*G|-M");
  EXPECT_EQ(staged("M*|G", 4, {}), "M*|G") << "of other layers than the model has";
}

TEST(PipelineSplit, GivesTheLastStageWhatIsNearestToAnEvenShare) {
  for (std::int64_t layers = 2; layers <= 130; ++layers) {
    for (std::int64_t pipeline = 2; pipeline <= layers; ++pipeline) {
      if (layers % pipeline == 0) continue;
      const PipelineSplit split = PipelineSplit::make(layers, {.pipeline = pipeline}).value();
      ASSERT_EQ(split.uneven_last(), nearest_last_stage(layers, pipeline))
          << layers << " layers on " << pipeline;
    }
  }
}

TEST(PipelineSplit, UnevenStagesSumUpForEverySize) {
  for (std::int64_t pipeline = 1; pipeline <= 9; ++pipeline) {
    for (std::int64_t layers = pipeline; layers <= 40; ++layers) {
      const PipelineSplit split = PipelineSplit::make(layers, {.pipeline = pipeline}).value();
      std::vector<std::int64_t> held(static_cast<std::size_t>(pipeline));
      for (std::int64_t layer = 0; layer < layers; ++layer) {
        ++held[static_cast<std::size_t>(split.stage_of(layer))];
      }
      for (std::size_t stage = 0; stage + 1 < held.size(); ++stage) {
        ASSERT_EQ(held[stage], held[0]) << layers << " over " << pipeline;
      }
      const std::int64_t last = split.uneven_last() > 0 ? split.uneven_last() : held[0];
      ASSERT_EQ(held.back(), last) << layers << " over " << pipeline;
      ASSERT_GT(held.back(), 0);
    }
  }
}

TEST(ShardRule, KnowsColumnRowExpertAndReplicated) {
  EXPECT_EQ(shard_rule("decoder.layers.0.self_attention.linear_qkv.weight", 2, false).axis, 0);
  EXPECT_EQ(shard_rule("decoder.layers.0.self_attention.linear_proj.weight", 2, false).axis, 1);
  EXPECT_EQ(shard_rule("decoder.layers.0.self_attention.linear_proj.bias", 1, false).axis, -1);
  EXPECT_EQ(shard_rule("decoder.layers.self_attention.linear_qkv.layer_norm_weight", 1, false).axis,
            -1);
  EXPECT_EQ(shard_rule("decoder.layers.0.self_attention.linear_q_down_proj.weight", 2, false).axis,
            -1);
  EXPECT_EQ(shard_rule("decoder.layers.0.self_attention.q_layernorm.weight", 1, false).axis, -1);
  const std::string attention = "decoder.layers.0.self_attention.";
  for (const char* part :
       {"q_proj", "k_proj", "v_proj", "q_conv1d", "k_conv1d", "v_conv1d", "f_proj", "f_b_proj",
        "b_proj", "g_proj", "g_b_proj", "q_b_proj", "kv_b_proj"}) {
    EXPECT_EQ(shard_rule(attention + part + ".weight", 2, false).axis, 0) << part;
  }
  EXPECT_EQ(shard_rule(attention + "o_proj.weight", 2, false).axis, 1);
  const std::string across = "decoder.layers.0.cross_attention.";
  for (const char* part : {"linear_q", "linear_kv"}) {
    EXPECT_EQ(shard_rule(across + part + ".weight", 2, false).axis, 0) << part;
    EXPECT_EQ(shard_rule(across + part + ".bias", 1, false).axis, 0) << part;
  }
  EXPECT_EQ(shard_rule("double_blocks.0.self_attention.added_linear_qkv.bias", 1, false).axis, 0);
  EXPECT_EQ(shard_rule("double_blocks.0.self_attention.added_linear_proj.weight", 2, false).axis,
            1);
  for (const char* part : {"q_a_proj", "kv_a_proj_with_mqa", "f_a_proj", "g_a_proj"}) {
    EXPECT_EQ(shard_rule(attention + part + ".weight", 2, false).axis, -1) << part;
  }
  EXPECT_EQ(shard_rule(attention + "A_log", 1, false).axis, 0);
  EXPECT_EQ(shard_rule(attention + "A_log", 4, false).axis, 2);
  EXPECT_EQ(shard_rule(attention + "core_attention.attn_sink", 1, false).axis, 0);
  EXPECT_EQ(shard_rule("decoder.layers.3.self_attention.weight", 2, false).axis, 0)
      << "a linear in its place";
  EXPECT_EQ(shard_rule("decoder.layers.3.mlp.weight", 2, false).axis, 0);
  EXPECT_EQ(shard_rule("vision_tower.layers.0.self_attention.q_proj.weight", 2, false).axis, -1);
  const std::string tower = "vision_model.decoder.layers.";
  EXPECT_EQ(shard_rule(tower + "0.self_attention.k_layernorm.weight", 1, false).axis, 0);
  EXPECT_EQ(shard_rule(tower + "self_attention.q_layernorm.weight", 1, false).axis, 0);
  EXPECT_EQ(shard_rule(tower + "0.pre_mlp_layernorm.weight", 1, false).axis, -1);
  const ShardRule fc1 = shard_rule("decoder.layers.mlp.experts.experts.linear_fc1.weight", 3, true);
  EXPECT_EQ(fc1.expert_axis, 0);
  EXPECT_EQ(fc1.axis, 1);
  EXPECT_TRUE(fc1.in_two);
  const ShardRule fc2 = shard_rule("decoder.layers.mlp.experts.experts.linear_fc2.weight", 3, true);
  EXPECT_EQ(fc2.axis, 2);
  EXPECT_FALSE(fc2.in_two);
  EXPECT_EQ(shard_rule("decoder.layers.0.mlp.experts.experts.3.linear_fc2.weight", 2, true).axis,
            1);
  EXPECT_EQ(shard_rule("decoder.layers.0.mlp.shared_experts.linear_fc1.weight", 2, true).axis, 0);
  EXPECT_FALSE(
      shard_rule("decoder.layers.0.mlp.shared_experts.linear_fc1.weight", 2, true).is_expert);
  EXPECT_EQ(shard_rule("decoder.layers.2.mixer.in_proj.weight.z", 2, false).axis, 0);
  EXPECT_EQ(shard_rule("decoder.layers.2.mixer.in_proj.layer_norm_weight", 1, false).axis, -1);
  EXPECT_TRUE(
      shard_rule("optimizer.state.param.embedding.word_embeddings.weight", 2, false).vocabulary);
  EXPECT_EQ(padded_vocabulary(151936, 128, 4), 152064);
}

TEST(Placement, SurvivesNamesThatDoNotFitTheirShapes) {
  const std::vector<TensorDesc> tensors{{"a.experts.experts.linear_fc2.weight", DType::kBF16, {6}},
                                        {"a.experts.experts.linear_fc1.weight", DType::kBF16, {}},
                                        {"embedding.word_embeddings.weight", DType::kBF16, {}}};
  const Placement placement = Placement::make(tensors, {.tensor = 2, .expert = 2}).value();
  EXPECT_EQ(placement.place(tensors[0]).value().size(), 6U) << "its only axis counts experts";
  EXPECT_EQ(placement.place(tensors[1]).value().size(), 1U);
  EXPECT_EQ(placement.place(tensors[2]).value().size(), 1U);
  EXPECT_EQ(placement.rank_of_object("decoder.layers.x._extra_state/shard_9_12"), 0);
}

// The chunks that Megatron-Core 0.16.1 wrote for the four-layer MoE model of the golden files at
// PP2 EP2 and TP1, here at TP2 ETP2 as well.
TEST(Placement, CutsStackedExpertsAsMegatronDoes) {
  const TensorDesc fc1{
      "decoder.layers.mlp.experts.experts.linear_fc1.weight", DType::kBF16, {4, 8, 32, 64}};
  const TensorDesc fc2{
      "decoder.layers.mlp.experts.experts.linear_fc2.weight", DType::kBF16, {4, 8, 64, 16}};
  const std::vector<TensorDesc> tensors{fc1, fc2};
  const Placement placement =
      Placement::make(tensors, {.tensor = 2, .pipeline = 2, .expert = 2, .expert_tensor = 2})
          .value();
  EXPECT_EQ(placement.world_size(), 8);
  const OwnedChunks chunks = placement.place(fc1).value();
  ASSERT_EQ(chunks.size(), 4U * 8 * 4);
  EXPECT_EQ(chunks[0].box, (Box{{0, 0, 0, 0}, {1, 1, 8, 64}}));
  EXPECT_EQ(chunks[2].box, (Box{{0, 0, 16, 0}, {1, 1, 8, 64}}));
  EXPECT_EQ(chunks[0].owner, 0);
  EXPECT_EQ(chunks[1].owner, 1);
  EXPECT_EQ(chunks[2].owner, 0) << "the up half of the same tensor-parallel rank";
  EXPECT_EQ(chunks[4 * 4].owner, 2) << "expert 4 is the first of expert-parallel rank 1";
  EXPECT_EQ(chunks[8 * 4 * 2].owner, 4) << "layer 2 is the first of stage 1";
  StoredTensor stored{fc1, ChunkList(4), Encoding::kRaw};
  for (std::size_t i = 0; i < chunks.size(); ++i) {
    stored.chunks.push_back({chunks[i].box, 0, {}, {}});
  }
  EXPECT_TRUE(check_coverage(stored, Replicas::kForbidden));
  const OwnedChunks rows = placement.place(fc2).value();
  EXPECT_EQ(rows[1].box, (Box{{0, 0, 0, 8}, {1, 1, 64, 8}}));
}

TEST(Placement, CountsTensorRanksThatHoldTheSame) {
  const auto copies = [](const ParallelConfig& config, std::string name, const Dims& shape) {
    const TensorDesc tensor{std::move(name), DType::kBF16, shape};
    return Placement::make(std::vector{tensor}, config)->copies_of(tensor);
  };
  const ParallelConfig same{.tensor = 4, .expert = 2, .expert_tensor = 4};
  EXPECT_EQ(copies(same, "decoder.final_layernorm.weight", {8}), 4);
  EXPECT_EQ(copies(same, "optimizer.state.exp_avg.decoder.layers.input_layernorm.weight", {2, 8}),
            4);
  EXPECT_EQ(copies(same, "decoder.layers.3.self_attention.linear_proj.bias", {8}), 4);
  EXPECT_EQ(copies(same, "decoder.layers.self_attention.linear_proj.weight", {2, 8, 8}), 1);
  EXPECT_EQ(copies(same, "embedding.position_embeddings.weight", {8, 8}), 4);
  EXPECT_EQ(copies(same, "embedding.word_embeddings.weight", {8, 8}), 1);
  // Of an axis that counts layers alone nothing can be cut.
  EXPECT_EQ(copies(same, "decoder.layers.mlp.linear_fc1.weight", {2}), 4);
  const std::string experts = "decoder.layers.mlp.experts.experts.linear_fc2.";
  EXPECT_EQ(copies(same, experts + "weight", {2, 4, 8, 8}), 1);
  EXPECT_EQ(copies(same, experts + "bias", {2, 4, 8}), 4);
  EXPECT_EQ(copies({.tensor = 4, .expert = 2, .expert_tensor = 2}, experts + "bias", {2, 4, 8}), 1)
      << "a tensor rank has some of the experts only";
  EXPECT_EQ(copies({}, "decoder.final_layernorm.weight", {8}), 1);
}

TEST(Placement, NamesWhatDoesNotDivide) {
  const std::vector<TensorDesc> tensors{
      {"embedding.word_embeddings.weight", DType::kBF16, {503, 64}},
      {"decoder.layers.0.self_attention.linear_proj.weight", DType::kBF16, {64, 30}},
      {"decoder.layers.0.mlp.experts.experts.linear_fc2.weight", DType::kBF16, {6, 64, 16}}};
  const Placement placement =
      Placement::make(tensors, {.tensor = 4, .expert = 4, .expert_tensor = 1}).value();
  EXPECT_EQ(placement.place(tensors[0]).error().code, Code::kVocabularyNotDivisible);
  EXPECT_EQ(placement.place(tensors[1]).error().code, Code::kNotDivisible);
  EXPECT_NE(placement.place(tensors[2]).error().message.find("--ep 4"), std::string::npos);
}

TEST(Placement, PutsEndsAndObjectsOnTheirStages) {
  const std::vector<TensorDesc> tensors{
      {"embedding.word_embeddings.weight", DType::kBF16, {8, 4}},
      {"decoder.layers.self_attention.linear_proj.weight", DType::kBF16, {4, 4, 4}},
      {"decoder.final_layernorm.weight", DType::kBF16, {4}},
      {"output_layer.weight", DType::kBF16, {8, 4}},
      {"mtp.layers.0.enorm.weight", DType::kBF16, {4}}};
  const Placement placement = Placement::make(tensors, {.tensor = 2, .pipeline = 2}).value();
  EXPECT_EQ(placement.place(tensors[0]).value()[1].owner, 1);
  EXPECT_EQ(placement.place(tensors[2]).value()[0].owner, 2);
  EXPECT_EQ(placement.place(tensors[3]).value()[1].owner, 3);
  EXPECT_EQ(placement.place(tensors[4]).value()[0].owner, 2);
  EXPECT_EQ(
      placement.rank_of_object("decoder.layers.self_attention.linear_proj._extra_state/shard_1_4"),
      0);
  EXPECT_EQ(
      placement.rank_of_object("decoder.layers.self_attention.linear_proj._extra_state/shard_2_4"),
      2);
  EXPECT_EQ(placement.rank_of_object("decoder.final_layernorm._extra_state/shard_0_1"), 2);
}

// DeepSeek-V4.1's, whose layers have numbers as those of the model.
TEST(Placement, PutsDraftsOnTheLastStage) {
  const std::vector<TensorDesc> tensors{
      {"decoder.layers.0.inner_layer.input_layernorm.weight", DType::kBF16, {4}},
      {"decoder.layers.1.inner_layer.pre_mlp_layernorm.weight", DType::kBF16, {4}},
      {"dspark.decoder.layers.0.inner_layer.input_layernorm.weight", DType::kBF16, {4}},
      {"dspark.main_proj.weight", DType::kBF16, {4, 4}},
      {"optimizer.state.exp_avg.dspark.norm.weight", DType::kF32, {4}}};
  const Placement placement = Placement::make(tensors, {.pipeline = 2}).value();
  EXPECT_EQ(placement.layers(), 2);
  EXPECT_EQ(placement.place(tensors[0]).value()[0].owner, 0);
  EXPECT_EQ(placement.place(tensors[1]).value()[0].owner, 1);
  for (std::size_t i = 2; i < tensors.size(); ++i) {
    EXPECT_TRUE(is_prediction_layer(tensors[i].name)) << tensors[i].name;
    EXPECT_EQ(placement.place(tensors[i]).value()[0].owner, 1) << tensors[i].name;
  }
  EXPECT_FALSE(is_stackable("dspark.decoder.layers"));
  EXPECT_FALSE(is_prediction_layer("decoder.dspark.weight"));
}

TEST(Placement, PutsTheEndsOfAnEncoderBehindItsLayers) {
  const std::vector<TensorDesc> tensors{
      {"embedding.tokentype_embeddings.weight", DType::kBF16, {2, 4}},
      {"encoder.layers.self_attention.linear_proj.weight", DType::kBF16, {2, 4, 4}},
      {"encoder.final_layernorm.weight", DType::kBF16, {4}},
      {"lm_head.dense.weight", DType::kBF16, {4, 4}},
      {"pooler.dense.weight", DType::kBF16, {4, 4}},
      {"optimizer.state.exp_avg.binary_head.weight", DType::kF32, {2, 4}}};
  const Placement placement = Placement::make(tensors, {.pipeline = 2}).value();
  EXPECT_EQ(placement.layers(), 2);
  EXPECT_EQ(placement.place(tensors[0]).value()[0].owner, 0);
  EXPECT_EQ(placement.place(tensors[1]).value()[1].owner, 1);
  for (std::size_t i = 2; i < tensors.size(); ++i) {
    EXPECT_EQ(placement.place(tensors[i]).value()[0].owner, 1) << tensors[i].name;
  }
}

TEST(LayerName, KnowsEveryListThatIsStacked) {
  const auto merger =
      split_layer_name("vision_model.decoder.deepstack_merger_list.linear_fc1.bias");
  ASSERT_TRUE(merger);
  EXPECT_EQ(merger->stack, "vision_model.decoder.deepstack_merger_list");
  EXPECT_EQ(merger->rest, "linear_fc1.bias");
  EXPECT_TRUE(is_stackable(merger->stack));
  EXPECT_EQ(split_layer_name("v.deepstack_merger_list.2.norm.bias")->index, 2);
  EXPECT_FALSE(is_stackable("vision_tower.vision_model.encoder.layers"));
  EXPECT_TRUE(is_main_stack("language_model.decoder.layers"));
  EXPECT_TRUE(is_main_stack("llava_model.language_model.decoder.layers"));
  EXPECT_FALSE(is_main_stack("llava_model.vision_model.decoder.layers"));
  EXPECT_TRUE(is_main_stack("chained_0.optimizer.state.exp_avg.decoder.layers"));
  EXPECT_TRUE(is_main_stack("optimizer.state.param.language_model.decoder.layers"));
  EXPECT_FALSE(is_main_stack("vision_model.decoder.layers"));
  EXPECT_FALSE(is_main_stack("optimizer.state.param.vision_model.decoder.layers"));
  EXPECT_FALSE(is_main_stack("optimizer.state.param"));
  EXPECT_TRUE(is_main_stack("encoder.layers")) << "BERT's";
  EXPECT_TRUE(is_stackable("optimizer.state.exp_avg.encoder.layers"));
  EXPECT_FALSE(is_main_stack("sound_model.encoder.layers"));
}

std::vector<std::string> placed(const Placement& placement, const TensorDesc& tensor) {
  std::vector<std::string> lines;
  const auto chunks = placement.place(tensor);
  if (!chunks) return {chunks.error().message};
  for (std::size_t i = 0; i < chunks->size(); ++i) {
    lines.push_back(to_string((*chunks)[i].box) + " on " + std::to_string(chunks->owner(i)));
  }
  return lines;
}

// Two stages of two ranks: owners 0 and 1 hold the first stage, 2 and 3 the second.
TEST(Placement, KeepsVisionTowersOnTheFirstStage) {
  const std::vector<TensorDesc> tensors{
      {"language_model.decoder.layers.mlp.linear_fc2.weight", DType::kBF16, {2, 4, 6}},
      {"vision_model.decoder.layers.mlp.linear_fc1.weight", DType::kBF16, {3, 6, 4}},
      {"vision_model.decoder.layers.mlp.linear_fc2.weight", DType::kBF16, {3, 4, 6}},
      {"vision_model.decoder.deepstack_merger_list.linear_fc2.bias", DType::kBF16, {1, 4}},
      {"visual.blocks.0.attn.out_proj.weight", DType::kBF16, {4, 4}},
      {"vision_tower.encoder.layers.1.self_attn.out_proj.weight", DType::kBF16, {4, 4}},
      {"multi_modal_projector.proj.weight", DType::kBF16, {4, 6}},
      {"vision_model.decoder.deepstack_merger_list.linear_fc1.weight", DType::kBF16, {1, 4, 4}},
      {"llava_model.vision_model.embedder.weight", DType::kBF16, {4, 6}}};
  const Placement placement = Placement::make(tensors, {2, 2, 1, 1, 2}).value();
  EXPECT_EQ(placement.layers(), 2) << "the tower's three are not the model's";
  using Lines = std::vector<std::string>;
  EXPECT_EQ(placed(placement, tensors[0]), (Lines{"[0:1, 0:4, 0:3] on 0", "[0:1, 0:4, 3:6] on 1",
                                                  "[1:2, 0:4, 0:3] on 2", "[1:2, 0:4, 3:6] on 3"}));
  EXPECT_EQ(placed(placement, tensors[1]),
            (Lines{"[0:1, 0:3, 0:4] on 0", "[0:1, 3:6, 0:4] on 1", "[1:2, 0:3, 0:4] on 0",
                   "[1:2, 3:6, 0:4] on 1", "[2:3, 0:3, 0:4] on 0", "[2:3, 3:6, 0:4] on 1"}))
      << "not gated";
  EXPECT_EQ(placed(placement, tensors[3]), Lines{"[0:1, 0:4] on 0"});
  EXPECT_EQ(placed(placement, tensors[4]), Lines{"[0:4, 0:4] on 0"}) << "HF's own tower";
  EXPECT_EQ(placed(placement, tensors[5]), Lines{"[0:4, 0:4] on 0"}) << "HF's own tower";
  EXPECT_EQ(placed(placement, tensors[6]), (Lines{"[0:2, 0:6] on 0", "[2:4, 0:6] on 1"}));
  EXPECT_EQ(placed(placement, tensors[7]), (Lines{"[0:1, 0:2, 0:4] on 0", "[0:1, 2:4, 0:4] on 1"}));
  EXPECT_EQ(placed(placement, tensors[8]), (Lines{"[0:2, 0:6] on 0", "[2:4, 0:6] on 1"}));
}

TEST(ShardRule, CutsEveryPartOfAMixerOnItsOwn) {
  const auto axis = [](std::string_view name, int axes) {
    return shard_rule(name, axes, false).axis;
  };
  for (const std::string mixer : {"decoder.layers.0.mixer.", "decoder.layers.0.mamba_mixer."}) {
    EXPECT_EQ(axis(mixer + "in_proj.weight.dt", 2), 0) << mixer;
    EXPECT_EQ(axis(mixer + "conv1d.bias.B", 1), 0) << mixer;
    EXPECT_EQ(axis(mixer + "D", 1), 0) << mixer;
    EXPECT_EQ(axis(mixer + "norm.weight", 1), 0) << mixer;
    EXPECT_EQ(axis(mixer + "out_proj.weight", 2), 1) << mixer;
    EXPECT_EQ(axis(mixer + "in_proj.layer_norm_weight", 1), -1) << mixer;
  }
  const std::string delta = "decoder.layers.0.self_attention.";
  EXPECT_EQ(axis(delta + "in_proj.weight.alpha", 2), 0);
  EXPECT_EQ(axis(delta + "conv1d.weight.key", 3), 0);
  EXPECT_EQ(axis(delta + "A_log", 1), 0);
  EXPECT_EQ(axis(delta + "dt_bias", 1), 0);
  EXPECT_EQ(axis(delta + "out_proj.weight", 2), 1);
  EXPECT_EQ(axis(delta + "out_norm.weight", 1), -1) << "one head's width, the same on all ranks";
  EXPECT_EQ(axis("decoder.layers.0.norm.weight", 1), -1);
}

}  // namespace
}  // namespace shardwright

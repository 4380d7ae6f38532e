// SPDX-License-Identifier: Apache-2.0
#include "layout/module_order.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace shardwright {
namespace {

using Names = std::vector<std::string>;

Names ordered(const Names& names) {
  Names result;
  for (const std::size_t i : in_module_order(names)) result.push_back(names[i]);
  return result;
}

// Backwards in, as in `expected` out.
void expect_order(const Names& expected) {
  Names reversed = expected;
  std::ranges::reverse(reversed);
  EXPECT_EQ(ordered(reversed), expected);
}

// As Megatron-Core 0.20 lists them with its own modules, experts in a list.
TEST(ModuleOrder, IsThatOfAnMoeOfLocalModules) {
  expect_order({"embedding.word_embeddings.weight",
                "embedding.position_embeddings.weight",
                "decoder.layers.2.input_layernorm.weight",
                "decoder.layers.2.self_attention.linear_proj.weight",
                "decoder.layers.2.self_attention.linear_qkv.weight",
                "decoder.layers.2.self_attention.linear_qkv.bias",
                "decoder.layers.2.self_attention.q_layernorm.weight",
                "decoder.layers.2.self_attention.k_layernorm.weight",
                "decoder.layers.2.pre_mlp_layernorm.weight",
                "decoder.layers.2.mlp.router.weight",
                "decoder.layers.2.mlp.experts.local_experts.2.linear_fc1.weight",
                "decoder.layers.2.mlp.experts.local_experts.2.linear_fc2.weight",
                "decoder.layers.2.mlp.experts.local_experts.10.linear_fc1.weight",
                "decoder.layers.2.mlp.shared_experts.gate_weight",
                "decoder.layers.2.mlp.shared_experts.linear_fc1.weight",
                "decoder.layers.2.mlp.shared_experts.linear_fc2.weight",
                "decoder.layers.10.input_layernorm.weight",
                "decoder.final_layernorm.weight",
                "decoder.final_layernorm.bias",
                "output_layer.weight"});
}

// And with Transformer Engine's, experts in one module, latent attention and an MTP layer.
TEST(ModuleOrder, IsThatOfTransformerEngineModules) {
  expect_order({"decoder.layers.0.input_layernorm.weight",
                "decoder.layers.0.self_attention.core_attention.softmax_offset",
                "decoder.layers.0.self_attention.linear_proj.weight",
                "decoder.layers.0.self_attention.linear_q_down_proj.weight",
                "decoder.layers.0.self_attention.linear_q_up_proj.layer_norm_weight",
                "decoder.layers.0.self_attention.linear_q_up_proj.weight",
                "decoder.layers.0.self_attention.linear_kv_down_proj.weight",
                "decoder.layers.0.self_attention.linear_kv_up_proj.layer_norm_weight",
                "decoder.layers.0.self_attention.linear_kv_up_proj.weight",
                "decoder.layers.0.mlp.linear_fc1.layer_norm_weight",
                "decoder.layers.0.mlp.linear_fc1.layer_norm_bias",
                "decoder.layers.0.mlp.linear_fc1.weight",
                "decoder.layers.0.mlp.linear_fc1.bias",
                "decoder.layers.0.mlp.linear_fc2.weight",
                "decoder.layers.1.mlp.router.weight",
                "decoder.layers.1.mlp.experts.linear_fc1.weight0",
                "decoder.layers.1.mlp.experts.linear_fc1.weight2",
                "decoder.layers.1.mlp.experts.linear_fc1.weight10",
                "decoder.layers.1.mlp.experts.linear_fc1.bias0",
                "decoder.layers.1.mlp.experts.linear_fc2.weight0",
                "decoder.final_layernorm.weight",
                "mtp.layers.0.enorm.weight",
                "mtp.layers.0.hnorm.weight",
                "mtp.layers.0.eh_proj.weight",
                "mtp.layers.0.mtp_model_layer.mlp.linear_fc1.weight",
                "mtp.layers.0.final_layernorm.weight",
                "output_layer.weight"});
}

// A mixer's own parameters come before those of the modules that it made first.
// T5's position embeddings and head have a second name, which their states have.
TEST(ModuleOrder, IsThatOfAT5) {
  expect_order({"embedding.word_embeddings.weight", "position_embeddings.weight",
                "encoder_relative_pos_emb.relative_attention_bias.weight",
                "decoder_relative_pos_emb.relative_attention_bias.weight",
                "encoder.layers.1.input_layernorm.weight", "encoder.layers.1.mlp.linear_fc2.bias",
                "encoder.final_layernorm.weight", "decoder.layers.1.input_layernorm.weight",
                "decoder.layers.1.self_attention.linear_proj.weight",
                "decoder.layers.1.self_attention.linear_qkv.weight",
                "decoder.layers.1.pre_cross_attn_layernorm.weight",
                "decoder.layers.1.cross_attention.linear_proj.weight",
                "decoder.layers.1.cross_attention.linear_q.weight",
                "decoder.layers.1.cross_attention.linear_kv.weight",
                "decoder.layers.1.pre_mlp_layernorm.weight",
                "decoder.layers.1.mlp.linear_fc1.weight", "decoder.final_layernorm.weight",
                "lm_head.output_layer.bias"});
}

TEST(ModuleOrder, IsThatOfABert) {
  expect_order({"embedding.word_embeddings.weight", "embedding.position_embeddings.weight",
                "embedding.tokentype_embeddings.weight", "encoder.layers.1.input_layernorm.weight",
                "encoder.final_layernorm.weight", "lm_head.dense.weight", "lm_head.dense.bias",
                "lm_head.layer_norm.weight", "output_layer.bias", "binary_head.weight",
                "pooler.dense.weight"});
}

TEST(ModuleOrder, HasAModulesOwnParametersFirst) {
  expect_order({"decoder.layers.0.mixer.dt_bias", "decoder.layers.0.mixer.A_log",
                "decoder.layers.0.mixer.D", "decoder.layers.0.mixer.in_proj.layer_norm_weight",
                "decoder.layers.0.mixer.in_proj.weight", "decoder.layers.0.mixer.conv1d.weight",
                "decoder.layers.0.mixer.conv1d.bias", "decoder.layers.0.mixer.norm.weight",
                "decoder.layers.0.mixer.out_proj.weight", "decoder.layers.0.norm.weight",
                "decoder.final_norm.weight"});
  expect_order({"vision_model.class_token", "vision_model.decoder.layers.0.mlp.linear_fc1.weight",
                "vision_model.merger.linear_fc1.weight"});
}

// As --mla-down-proj-fusion makes it.
TEST(ModuleOrder, IsThatOfAFusedLatentAttention) {
  expect_order({"decoder.layers.0.self_attention.linear_proj.weight",
                "decoder.layers.0.self_attention.linear_qkv_down_proj.layer_norm_weight",
                "decoder.layers.0.self_attention.linear_qkv_down_proj.weight",
                "decoder.layers.0.self_attention.linear_q_up_proj.layer_norm_weight",
                "decoder.layers.0.self_attention.linear_q_up_proj.weight",
                "decoder.layers.0.self_attention.linear_kv_up_proj.layer_norm_weight",
                "decoder.layers.0.self_attention.linear_kv_up_proj.weight",
                "decoder.layers.0.mlp.linear_fc1.layer_norm_weight"});
}

// They stay in the order in which they come, but no module lies inside another.
TEST(ModuleOrder, KeepsUnknownModulesTogether) {
  EXPECT_EQ(ordered({"tower.zeta.weight", "tower.alpha.weight", "tower.zeta.bias",
                     "tower.alpha.bias", "tower.linear_fc1.weight"}),
            Names({"tower.linear_fc1.weight", "tower.zeta.weight", "tower.zeta.bias",
                   "tower.alpha.weight", "tower.alpha.bias"}));
}

std::string guess(const Names& names) {
  const Status status = check_module_order(names);
  if (status) return {};
  EXPECT_EQ(status.error().code, Code::kOptimizerUnsupported);
  return status.error().message.substr(0, status.error().message.find(':'));
}

TEST(ModuleOrder, IsAGuessWhereAnUnknownOneHasNeighbours) {
  EXPECT_EQ(guess({"decoder.layers.0.mlp.linear_fc1.weight", "decoder.layers.0.mlp.gate.weight"}),
            "decoder.layers.0.mlp.gate");
  EXPECT_EQ(guess({"decoder.layers.0.mixer.weight", "decoder.layers.0.mixer.skew"}),
            "decoder.layers.0.mixer.skew");
  EXPECT_EQ(guess({"vision_model.patch.weight", "language_model.output_layer.weight"}),
            "vision_model");
  EXPECT_EQ(guess({"mtp.layers.0.enorm.weight", "mtp.layers.0.shared_head.weight"}),
            "mtp.layers.0.shared_head");
}

TEST(ModuleOrder, IsKnownWhereNothingIsBesideAnUnknownOne) {
  EXPECT_EQ(guess({"language_model.decoder.layers.0.mlp.linear_fc1.weight",
                   "language_model.output_layer.weight"}),
            "");
  EXPECT_EQ(guess({"decoder.layers.0.self_attention.core_attention.softmax_offset",
                   "decoder.layers.0.mixer.router.odd", "decoder.layers.0.mixer.dt_bias"}),
            "")
      << "a module's own parameters stand before those of the modules in it";
}

TEST(ModuleOrder, KnowsBuffers) {
  EXPECT_TRUE(is_parameter("decoder.layers.0.mlp.router.weight", DType::kF32));
  EXPECT_FALSE(is_parameter("decoder.layers.0.mlp.router.expert_bias", DType::kF32));
  EXPECT_FALSE(is_parameter("tower.norm.num_batches_tracked", DType::kI64));
}

}  // namespace
}  // namespace shardwright

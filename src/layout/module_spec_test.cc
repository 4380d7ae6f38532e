// SPDX-License-Identifier: Apache-2.0
#include "layout/module_spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace shardwright {
namespace {

using testing::ElementsAre;

std::vector<std::string> named(const std::vector<std::string>& names, ModuleSpec spec) {
  std::vector<TensorDesc> tensors;
  for (const std::string& name : names) tensors.push_back({name, DType::kBF16, {4}});
  std::vector<std::string> result;
  for (const TensorDesc& tensor : names_in_spec(tensors, spec)) result.push_back(tensor.name);
  return result;
}

TEST(ModuleSpec, LocalModulesOfPlainAttentionUseTheFusedNames) {
  const std::vector<std::string> te = {
      "decoder.layers.pre_mlp_layernorm.weight", "decoder.layers.mlp.router.weight",
      "optimizer.state.exp_avg.decoder.layers.mlp.router.weight",
      "optimizer.state.exp_avg.decoder.layers.pre_mlp_layernorm.weight"};
  const std::vector<std::string> local = named(te, ModuleSpec::kLocal);
  EXPECT_THAT(
      local,
      ElementsAre("decoder.layers.mlp.linear_fc1.layer_norm_weight",
                  "decoder.layers.mlp.router.weight",
                  "optimizer.state.exp_avg.decoder.layers.mlp.router.weight",
                  "optimizer.state.exp_avg.decoder.layers.mlp.linear_fc1.layer_norm_weight"));
  EXPECT_EQ(named(local, ModuleSpec::kTransformerEngine), te);
  EXPECT_EQ(named(te, ModuleSpec::kKeep), te);
}

TEST(ModuleSpec, LocalModulesOfLatentAttentionShowTheirNorms) {
  const std::vector<std::string> te = {
      "decoder.layers.0.mlp.linear_fc1.layer_norm_weight",
      "decoder.layers.0.self_attention.linear_kv_down_proj.weight",
      "decoder.layers.0.self_attention.linear_kv_up_proj.layer_norm_weight",
      "decoder.layers.1.mlp.router.weight", "decoder.layers.1.pre_mlp_layernorm.weight"};
  const std::vector<std::string> local = named(te, ModuleSpec::kLocal);
  EXPECT_THAT(local, ElementsAre("decoder.layers.0.pre_mlp_layernorm.weight",
                                 "decoder.layers.0.self_attention.linear_kv_down_proj.weight",
                                 "decoder.layers.0.self_attention.kv_layernorm.weight",
                                 "decoder.layers.1.mlp.router.weight",
                                 "decoder.layers.1.pre_mlp_layernorm.weight"));
  EXPECT_EQ(named(local, ModuleSpec::kTransformerEngine), te);
}

TEST(ModuleSpec, NormsInFrontOfAnIndexerAreNeverFused) {
  const std::vector<std::string> sparse = {
      "decoder.layers.0.self_attention.core_attention.indexer.linear_wk.weight",
      "decoder.layers.0.self_attention.linear_kv_down_proj.weight",
      "decoder.layers.0.self_attention.q_layernorm.weight",
      "decoder.layers.0.self_attention.kv_layernorm.weight"};
  EXPECT_EQ(named(sparse, ModuleSpec::kTransformerEngine), sparse);
  EXPECT_EQ(named(sparse, ModuleSpec::kLocal), sparse);
}

TEST(ModuleSpec, LayersWithAScalarKeepTheNamesOfTheirNorms) {
  const std::vector<std::string> gemma = {"decoder.layers.0.layer_scalar",
                                          "decoder.layers.0.pre_mlp_layernorm.weight"};
  EXPECT_EQ(named(gemma, ModuleSpec::kTransformerEngine), gemma);
}

TEST(ModuleSpec, DenseLayersStayFused) {
  const std::vector<std::string> dense = {"decoder.layers.mlp.linear_fc1.layer_norm_weight"};
  EXPECT_EQ(named(dense, ModuleSpec::kLocal), dense);
  EXPECT_EQ(named(dense, ModuleSpec::kTransformerEngine), dense);
}

// Megatron-Core's own towers, also inside a wrapper; another's layers (Qwen's, which learn other
// positions) have no local spec.
TEST(ModuleSpec, LocalModulesOfATowerShowTheirNorms) {
  const std::string layer = "vision_model.decoder.layers.0.";
  const std::vector<std::string> te = {
      "vision_model.position_embeddings.weight",
      layer + "self_attention.linear_qkv.layer_norm_weight",
      "optimizer.state.exp_avg." + layer + "mlp.linear_fc1.layer_norm_bias",
      "decoder.layers.0.self_attention.linear_qkv.layer_norm_weight",
      "llava_model.vision_model.position_embeddings",
      "llava_model.vision_model.decoder.layers.0.mlp.linear_fc1.layer_norm_weight"};
  const std::vector<std::string> local = named(te, ModuleSpec::kLocal);
  EXPECT_THAT(local, ElementsAre(te[0], layer + "input_layernorm.weight",
                                 "optimizer.state.exp_avg." + layer + "pre_mlp_layernorm.bias",
                                 te[3], te[4],
                                 "llava_model.vision_model.decoder.layers.0."
                                 "pre_mlp_layernorm.weight"));
  EXPECT_EQ(named(local, ModuleSpec::kTransformerEngine), te);
  const std::vector<std::string> qwen = {"vision_model.pos_embed.weight", te[1]};
  EXPECT_EQ(named(qwen, ModuleSpec::kLocal), qwen);
}

TEST(ModuleSpec, LayersThatScaleHaveNormsOfTheirOwn) {
  const std::vector<std::string> tower = {"decoder.layers.pre_mlp_layernorm.weight",
                                          "vision_model.decoder.layers.ls1",
                                          "vision_model.decoder.layers.pre_mlp_layernorm.weight"};
  EXPECT_THAT(named(tower, ModuleSpec::kLocal),
              ElementsAre("decoder.layers.mlp.linear_fc1.layer_norm_weight", tower[1], tower[2]));
}

}  // namespace
}  // namespace shardwright

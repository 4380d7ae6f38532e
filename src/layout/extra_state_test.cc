// SPDX-License-Identifier: Apache-2.0
#include "layout/extra_state.h"

#include <gtest/gtest.h>

namespace shardwright {
namespace {

TEST(ExtraState, CountsLayersAndExpertsAsMegatronDoes) {
  const std::vector<TensorDesc> tensors{
      {"embedding.word_embeddings.weight", DType::kBF16, {8, 4}},
      {"decoder.layers.self_attention.linear_qkv.weight", DType::kBF16, {2, 4, 4}},
      {"decoder.layers.self_attention.linear_qkv.layer_norm_weight", DType::kBF16, {2, 4}},
      {"decoder.layers.self_attention.q_layernorm.weight", DType::kBF16, {2, 4}},
      {"decoder.layers.mlp.router.weight", DType::kBF16, {2, 2, 4}},
      {"decoder.layers.mlp.router.expert_bias", DType::kF32, {2, 2}},
      {"decoder.layers.mlp.experts.experts.linear_fc1.weight", DType::kBF16, {2, 2, 8, 4}},
      {"decoder.final_layernorm.weight", DType::kBF16, {4}},
      {"mtp.layers.0.eh_proj.weight", DType::kBF16, {4, 8}},
      {"mtp.layers.0.transformer_layer.mlp.experts.experts.linear_fc2.weight",
       DType::kBF16,
       {2, 4, 4}},
      {"output_layer.weight", DType::kBF16, {8, 4}}};
  EXPECT_EQ(extra_state_names(tensors, ModuleSpec::kTransformerEngine),
            (std::vector<std::string>{
                "decoder.layers.self_attention.linear_qkv._extra_state/shard_0_2",
                "decoder.layers.self_attention.linear_qkv._extra_state/shard_1_2",
                "decoder.layers.self_attention.q_layernorm._extra_state/shard_0_2",
                "decoder.layers.self_attention.q_layernorm._extra_state/shard_1_2",
                "decoder.layers.mlp.experts.experts.linear_fc1._extra_state/shard_0.0_2.2",
                "decoder.layers.mlp.experts.experts.linear_fc1._extra_state/shard_0.1_2.2",
                "decoder.layers.mlp.experts.experts.linear_fc1._extra_state/shard_1.0_2.2",
                "decoder.layers.mlp.experts.experts.linear_fc1._extra_state/shard_1.1_2.2",
                "decoder.final_layernorm._extra_state/shard_0_1",
                "mtp.layers.0.eh_proj._extra_state/shard_0_1",
                "mtp.layers.0.transformer_layer.mlp.experts.experts.linear_fc2._extra_state/"
                "shard_0_2",
                "mtp.layers.0.transformer_layer.mlp.experts.experts.linear_fc2._extra_state/"
                "shard_1_2"}));
}

TEST(ExtraState, LocalModulesHaveItForLinearsAndTheLastNorm) {
  const std::vector<TensorDesc> tensors{
      {"decoder.layers.0.mlp.linear_fc2.weight", DType::kBF16, {4, 4}},
      {"decoder.layers.0.mlp.linear_fc1.layer_norm_weight", DType::kBF16, {4}},
      {"decoder.layers.0.self_attention.q_layernorm.weight", DType::kBF16, {4}},
      {"decoder.final_layernorm.weight", DType::kBF16, {4}}};
  EXPECT_EQ(extra_state_names(tensors, ModuleSpec::kLocal),
            (std::vector<std::string>{"decoder.layers.0.mlp.linear_fc2._extra_state/shard_0_1",
                                      "decoder.final_layernorm._extra_state/shard_0_1"}));
}

// Seen in Megatron-Core's MambaModel; a GPTModel takes it out.
TEST(ExtraState, OfTheOutputLayerIsAskedForByHybridModels) {
  const std::vector<TensorDesc> tensors{{"decoder.final_norm.weight", DType::kBF16, {4}},
                                        {"output_layer.weight", DType::kBF16, {8, 4}}};
  EXPECT_EQ(extra_state_names(tensors, ModuleSpec::kTransformerEngine),
            (std::vector<std::string>{"decoder.final_norm._extra_state/shard_0_1",
                                      "output_layer._extra_state/shard_0_1"}));
}

// GPT-OSS's softmax, what chooses keys (DSA), and what is around latent experts.
TEST(ExtraState, OfModulesThatFewModelsHave) {
  const std::string layer = "decoder.layers.";
  const std::vector<TensorDesc> few{
      {layer + "self_attention.core_attention.softmax_offset", DType::kBF16, {2, 4}},
      {layer + "self_attention.core_attention.indexer.k_norm.weight", DType::kBF16, {2, 4}},
      {layer + "mlp.fc1_latent_proj.weight", DType::kBF16, {2, 2, 4}}};
  EXPECT_EQ(extra_state_names(few, ModuleSpec::kTransformerEngine),
            (std::vector<std::string>{
                layer + "self_attention.core_attention._extra_state/shard_0_2",
                layer + "self_attention.core_attention._extra_state/shard_1_2",
                layer + "self_attention.core_attention.indexer.k_norm._extra_state/shard_0_2",
                layer + "self_attention.core_attention.indexer.k_norm._extra_state/shard_1_2",
                layer + "mlp.fc1_latent_proj._extra_state/shard_0_2",
                layer + "mlp.fc1_latent_proj._extra_state/shard_1_2"}));
  EXPECT_EQ(extra_state_names(few, ModuleSpec::kLocal),
            (std::vector<std::string>{layer + "mlp.fc1_latent_proj._extra_state/shard_0_2",
                                      layer + "mlp.fc1_latent_proj._extra_state/shard_1_2"}));
}

TEST(ExtraState, OfModelsThatRead) {
  const std::vector<TensorDesc> bert{{"encoder.final_layernorm.weight", DType::kBF16, {4}},
                                     {"lm_head.dense.weight", DType::kBF16, {4, 4}},
                                     {"output_layer.bias", DType::kBF16, {8}}};
  const std::vector<std::string> ends{"encoder.final_layernorm._extra_state/shard_0_1",
                                      "output_layer._extra_state/shard_0_1"};
  EXPECT_EQ(extra_state_names(bert, ModuleSpec::kLocal), ends);
  EXPECT_EQ(extra_state_names(bert, ModuleSpec::kTransformerEngine), ends);
  const std::vector<TensorDesc> t5{{"lm_head.output_layer.weight", DType::kBF16, {8, 4}}};
  EXPECT_EQ(extra_state_names(t5, ModuleSpec::kLocal),
            (std::vector<std::string>{"lm_head.output_layer._extra_state/shard_0_1"}));
}

// CLIPViTModel takes Transformer Engine's for these norms wherever it can be imported.
TEST(ExtraState, OfTheNormsAroundATowersLayersInEachSpec) {
  const std::vector<TensorDesc> tensors{
      {"vision_model.ln_pre.weight", DType::kBF16, {4}},
      {"vision_model.ln_pre.bias", DType::kBF16, {4}},
      {"llava_model.vision_model.ln_post.weight", DType::kBF16, {4}},
      {"vision_model.decoder.layers.0.input_layernorm.weight", DType::kBF16, {4}}};
  const std::vector<std::string> around{"vision_model.ln_pre._extra_state/shard_0_1",
                                        "llava_model.vision_model.ln_post._extra_state/shard_0_1"};
  EXPECT_EQ(extra_state_names(tensors, ModuleSpec::kLocal), around);
  std::vector<std::string> fused = around;
  fused.emplace_back("vision_model.decoder.layers.0.input_layernorm._extra_state/shard_0_1");
  EXPECT_EQ(extra_state_names(tensors, ModuleSpec::kTransformerEngine), fused);
}

TEST(ExtraState, NotOfWhatOnlyHuggingFaceStores) {
  const std::vector<TensorDesc> tensors{
      {"hf_extra.vision_tower.post_layernorm.weight", DType::kBF16, {4}},
      {"hf_extra.vision_tower.ln_post.weight", DType::kBF16, {4}},
      {"hf_extra.vision_tower.head.linear_fc1.weight", DType::kBF16, {4, 4}}};
  for (const ModuleSpec spec : {ModuleSpec::kLocal, ModuleSpec::kTransformerEngine}) {
    EXPECT_TRUE(extra_state_names(tensors, spec).empty());
    EXPECT_FALSE(is_norm_around_layers("hf_extra.vision_tower.ln_post"));
  }
}

// Megatron-Core up to 0.16 asks for that of a predicting layer's attention.
TEST(ExtraState, OfPredictingLayersAttention) {
  const std::string layer = "mtp.layers.0.transformer_layer.self_attention.";
  const std::vector<TensorDesc> mtp{{layer + "linear_proj.weight", DType::kBF16, {4, 4}}};
  EXPECT_EQ(extra_state_names(mtp, ModuleSpec::kTransformerEngine),
            (std::vector<std::string>{layer + "linear_proj._extra_state/shard_0_1",
                                      layer + "core_attention._extra_state/shard_0_1"}));
  EXPECT_EQ(extra_state_names(mtp, ModuleSpec::kLocal).size(), 1U);
}

TEST(ExtraState, OfLinearsInThePlaceOfBlocks) {
  const std::vector<TensorDesc> tensors{
      {"decoder.layers.0.self_attention.weight", DType::kBF16, {4, 4}},
      {"decoder.layers.0.mlp.weight", DType::kBF16, {4, 4}}};
  EXPECT_EQ(extra_state_names(tensors, ModuleSpec::kTransformerEngine),
            (std::vector<std::string>{"decoder.layers.0.self_attention._extra_state/shard_0_1",
                                      "decoder.layers.0.mlp._extra_state/shard_0_1"}));
}

TEST(ExtraState, NotOfDeltaNetsInTheirPlace) {
  const std::string net = "decoder.layers.0.self_attention";
  EXPECT_FALSE(has_extra_state(net, ModuleSpec::kTransformerEngine));
  EXPECT_FALSE(is_linear_in_place(net + ".dt_bias"));
  EXPECT_FALSE(is_linear_in_place(net + ".linear_proj.weight"));
}

TEST(ExtraState, OfMixersAndVisionTowers) {
  const std::vector<TensorDesc> tensors{
      {"decoder.layers.0.mixer.in_proj.weight.z", DType::kBF16, {4, 4}},
      {"decoder.layers.0.mixer.in_proj.weight.x", DType::kBF16, {4, 4}},
      {"decoder.layers.0.mixer.conv1d.weight.x", DType::kBF16, {4, 1, 4}},
      {"decoder.layers.0.mixer.norm.weight", DType::kBF16, {4}},
      {"decoder.layers.0.norm.weight", DType::kBF16, {4}},
      {"decoder.layers.1.self_attention.out_norm.weight", DType::kBF16, {4}},
      {"vision_model.decoder.deepstack_merger_list.patch_norm.bias", DType::kBF16, {2, 4}},
      {"vision_model.pos_embed.weight", DType::kBF16, {4, 4}},
      {"visual.blocks.0.attn.out_proj.weight", DType::kBF16, {4, 4}},
      {"vision_tower.post_layernorm.weight", DType::kBF16, {4}},
      {"multi_modal_projector.mm_soft_embed_norm.weight", DType::kBF16, {4}},
      {"multi_modal_projector.proj.weight", DType::kBF16, {4, 4}}};
  EXPECT_EQ(extra_state_names(tensors, ModuleSpec::kTransformerEngine),
            (std::vector<std::string>{
                "decoder.layers.0.mixer.in_proj._extra_state/shard_0_1",
                "decoder.layers.0.norm._extra_state/shard_0_1",
                "decoder.layers.1.self_attention.out_norm._extra_state/shard_0_1",
                "vision_model.decoder.deepstack_merger_list.patch_norm._extra_state/shard_0_2",
                "vision_model.decoder.deepstack_merger_list.patch_norm._extra_state/shard_1_2",
                "multi_modal_projector.mm_soft_embed_norm._extra_state/shard_0_1",
                "multi_modal_projector.proj._extra_state/shard_0_1"}));
}

}  // namespace
}  // namespace shardwright

// SPDX-License-Identifier: Apache-2.0
#include "plan/canonical.h"

#include <gtest/gtest.h>

namespace shardwright {
namespace {

bool is_megatrons(const char* name) {
  Catalog catalog;
  catalog.tensors.push_back({{name, DType::kF32, {1}}, ChunkList(1)});
  return has_megatron_names(catalog);
}

TEST(MegatronNames, AreThoseOfItsModules) {
  EXPECT_TRUE(is_megatrons("decoder.layers.mlp.linear_fc1.weight"));
  EXPECT_TRUE(is_megatrons("embedding.word_embeddings.weight"));
  EXPECT_TRUE(is_megatrons("double_blocks.0.self_attention.linear_proj.weight"));
  EXPECT_TRUE(is_megatrons("optimizer.state.exp_avg.language_model.decoder.final_norm.weight"));
  EXPECT_TRUE(is_megatrons("module.decoder.layers.3.self_attention.linear_qkv.weight"));
  EXPECT_FALSE(is_megatrons("model.layers.0.mlp.up_proj.weight"));
  // OPT's, T5's, Zamba2's, Whisper's and those of Qwen3-Omni's voice.
  for (const char* name :
       {"model.decoder.embed_tokens.weight", "model.decoder.layers.0.self_attn.q_proj.weight",
        "model.decoder.layers.11.fc1.bias", "model.decoder.final_layer_norm.weight",
        "decoder.block.0.layer.0.SelfAttention.q.weight", "decoder.final_layer_norm.weight",
        "model.layers.1.mamba_decoder.mamba.in_proj.weight", "code2wav.decoder.0.conv.weight",
        "model.decoder.layers.0.encoder_attn.k_proj.weight"}) {
    EXPECT_FALSE(is_megatrons(name)) << name;
  }
  // In the files of Flux's makers, and in diffusers'.
  EXPECT_FALSE(is_megatrons("double_blocks.0.img_attn.qkv.weight"));
  EXPECT_FALSE(is_megatrons("transformer_blocks.0.attn.to_q.weight"));
}

TEST(MegatronNames, StandWhereMegatronHasThem) {
  const auto has_roots = [](const char* name) {
    Catalog catalog;
    catalog.tensors.push_back({{name, DType::kF32, {1}}, ChunkList(1)});
    return has_megatron_roots(catalog);
  };
  for (const char* name :
       {"decoder.layers.mlp.linear_fc1.weight", "embedding.word_embeddings.weight",
        "llava_model.language_model.decoder.final_norm.weight",
        "thinker.language_model.embedding.word_embeddings.weight",
        "vision_model.decoder.layers.0.mlp.linear_fc1.weight",
        "double_blocks.0.self_attention.linear_proj.weight"}) {
    EXPECT_TRUE(has_roots(name)) << name;
  }
  for (const char* name :
       {"model.decoder.layers.0.mlp.linear_fc1.weight", "net.embedding.word_embeddings.weight",
        "state.model.language_model.decoder.final_norm.weight"}) {
    EXPECT_FALSE(has_roots(name)) << name;
  }
}

TEST(OptimizerNames, AreThoseOfTorchsStateDictsToo) {
  for (const char* name :
       {"optimizer.state.exp_avg.decoder.x", "optimizer.param_groups.W.lr",
        "chained_0.param_groups", "app.optim.state.model.norm.weight.step",
        "app.optim.param_groups.0.lr", "app.optim.param_groups", "optim.state.W.exp_avg",
        "opt.param_groups.W.lr", "optimizers.0.state.W.exp_avg_sq",
        "state.optimizers.AdamW.state.model.norm.weight.exp_avg",
        "optimizer_state_dict.state.0.step", "state.model.norm.weight.exp_avg", "state.W.step",
        "param_groups.W.betas.0"}) {
    EXPECT_TRUE(is_optimizer_name(name)) << name;
  }
  // Modules may have such names.
  for (const char* name : {"model.opt.decoder.layers.0.fc1.weight", "opt.weight", "state.weight",
                           "model.state.step", "backbone.layers.0.mixer.state",
                           "optim_proj.state.weight", "0.state.weight", "model.0.state.weight"}) {
    EXPECT_FALSE(is_optimizer_name(name)) << name;
  }
}

}  // namespace
}  // namespace shardwright

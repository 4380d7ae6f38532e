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
  EXPECT_FALSE(is_megatrons("model.layers.0.mlp.up_proj.weight"));
  // In the files of Flux's makers, and in diffusers'.
  EXPECT_FALSE(is_megatrons("double_blocks.0.img_attn.qkv.weight"));
  EXPECT_FALSE(is_megatrons("transformer_blocks.0.attn.to_q.weight"));
}

}  // namespace
}  // namespace shardwright

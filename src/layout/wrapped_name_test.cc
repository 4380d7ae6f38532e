// SPDX-License-Identifier: Apache-2.0
#include "layout/wrapped_name.h"

#include <gtest/gtest.h>

#include "layout/layer_name.h"
#include "layout/tower.h"

namespace shardwright {
namespace {

TEST(WrappedName, IsThatOfTheModelInside) {
  EXPECT_EQ(unwrapped("thinker.visual.blocks.0.norm1.weight"), "visual.blocks.0.norm1.weight");
  EXPECT_EQ(unwrapped("llava_model.vision_model.embedder.weight"), "vision_model.embedder.weight");
  EXPECT_EQ(unwrapped("language_model.decoder.layers"), "language_model.decoder.layers");
  EXPECT_EQ(unwrapped("thinker_of_another_kind.x"), "thinker_of_another_kind.x");
}

TEST(WrappedName, LanguageModelsAreFoundInsideWrappers) {
  EXPECT_EQ(language_prefix("thinker.language_model.output_layer.weight"),
            "thinker.language_model.");
  EXPECT_EQ(language_prefix("llava_model.language_model.x"), "llava_model.language_model.");
  EXPECT_EQ(language_prefix("language_model.x"), "language_model.");
  EXPECT_EQ(language_prefix("decoder.layers.0.x"), "");
  EXPECT_EQ(language_prefix("thinker.visual.x"), "");
}

TEST(WrappedName, ThinkersHaveTheirLayersOnStagesAndTheirTowersWhole) {
  EXPECT_TRUE(is_main_stack("thinker.language_model.decoder.layers"));
  EXPECT_TRUE(is_main_stack("optimizer.state.exp_avg.thinker.language_model.decoder.layers"));
  EXPECT_FALSE(is_main_stack("thinker.audio_model.layers"));
  EXPECT_TRUE(is_in_foreign_module("thinker.visual.blocks.0.attn.out_proj.weight"));
  EXPECT_TRUE(is_in_foreign_module("thinker.audio_model.layers.0.self_attn.out_proj.weight"));
  EXPECT_TRUE(is_in_foreign_module("decoder.layers.0.self_attention.linear_attn.out_proj.weight"));
  EXPECT_TRUE(is_in_foreign_module("decoder.layers.0.self_attention.input_layernorm.weight"));
  EXPECT_TRUE(is_in_foreign_module("decoder.layers.0.self_attention.linear_attn"));
  EXPECT_FALSE(is_in_foreign_module("decoder.layers.0.self_attention.out_proj.weight"));
  EXPECT_FALSE(is_in_foreign_module("decoder.layers.0.input_layernorm.weight"));
  EXPECT_FALSE(is_in_foreign_module("thinker.language_model.decoder.layers.0.x"));
  EXPECT_TRUE(is_in_foreign_module("vision_model.transformer.resblocks.0.attn.out_proj.weight"));
  EXPECT_TRUE(is_in_foreign_module("sound_model.encoder.layers.0.self_attn.out_proj.weight"));
  EXPECT_TRUE(is_in_foreign_module("resampler_model.spatial_linear.fc1.weight"));
  EXPECT_EQ(tower_of("thinker.visual.blocks.0.norm1.weight"), "");
}

}  // namespace
}  // namespace shardwright

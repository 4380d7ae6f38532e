// SPDX-License-Identifier: Apache-2.0
#include "layout/tower.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "layout/omni_names.h"
#include "layout/tower_evidence.h"

namespace shardwright {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(OmniNames, AreThoseOfThePartsTheyWereMadeOf) {
  for (const auto& [omni, core] : std::vector<std::pair<const char*, const char*>>{
           {"encoder_model.image_encoder.patch_embed.proj.weight",
            "vision_model.patch_embed.proj.weight"},
           {"encoder_model.image_projector.linear_fc1.bias", "adapter.linear_fc1.bias"},
           {"encoder_model.text_encoder.word_embeddings.weight",
            "language_model.embedding.word_embeddings.weight"},
           {"foundation_model.decoder.layers.3.mlp.linear_fc2.weight",
            "language_model.decoder.layers.3.mlp.linear_fc2.weight"},
           {"foundation_modeler.x", "foundation_modeler.x"},
           {"language_model.foundation_model.x", "language_model.foundation_model.x"}}) {
    EXPECT_EQ(core_name_of_omni(omni), core);
  }
}

TEST(Tower, IsWhatIsNotTheLanguageModel) {
  EXPECT_EQ(tower_of("vision_model.decoder.layers.0.mlp.linear_fc1.weight"), "vision_model");
  EXPECT_EQ(tower_of("vision_projection.encoder.linear_fc1.weight"), "vision_projection");
  for (const char* own : {"language_model.decoder.final_layernorm.weight", "mtp.layers.0.x",
                          "decoder.layers.0.x", "embedding.word_embeddings.weight",
                          "output_layer.weight", "llava_model.vision_model.decoder.layers.0.x"}) {
    EXPECT_EQ(tower_of(own), "") << own;
  }
  const TowerSizes sizes = {{"vision_model", 2}};
  EXPECT_EQ(tensor_size_of("vision_model.x", sizes, 8), 2);
  EXPECT_EQ(tensor_size_of("adapter.x", sizes, 8), 8);
  EXPECT_EQ(tensor_size_of("decoder.x", {{"", 2}}, 8), 2) << "whatever the evidence";
}

TEST(Tower, CutsItsPatchEmbeddingWhereRowsAreNotItsWidth) {
  const auto desc = [](const char* name, Dims shape) {
    return TensorDesc{name, DType::kBF16, shape};
  };
  const std::vector<TensorDesc> tensors = {
      desc("language_model.decoder.layers.0.mlp.linear_fc1.weight", {8, 99}),
      desc("vision_model.decoder.layers.0.self_attention.linear_qkv.weight", {48, 32})};
  EXPECT_EQ(tower_width(tensors, "vision_model"), 32);
  EXPECT_EQ(tower_width(tensors, "adapter"), std::nullopt);
  const auto cuts = [&](Dims shape) {
    return patch_cuts(desc("vision_model.patch_embed.proj.weight", shape), tensors);
  };
  EXPECT_EQ(cuts({8, 3, 4, 4}), 4);
  EXPECT_EQ(cuts({16, 48}), 2);
  EXPECT_EQ(cuts({32, 3, 4, 4}), 1);
  EXPECT_EQ(cuts({64, 3, 4, 4}), 1);
  EXPECT_EQ(cuts({12, 3, 4, 4}), 1);
  EXPECT_EQ(cuts({0, 3}), 1);
  EXPECT_EQ(cuts({}), 1);
  EXPECT_EQ(patch_cuts(desc("vision_model.patch_embed.proj.weight", {8}), {}), 1);
  EXPECT_EQ(patch_cuts(desc("vision_model.patch_embed.proj.bias", {8}), tensors), 4);
  EXPECT_EQ(patch_cuts(desc("vision_model.pos_embed.weight", {8, 32}), tensors), 1);
}

TowerEvidence encoder() { return {"vision_model", true, {}, {}, {}}; }

std::string settled(const TowerEvidence& tower, std::optional<std::int64_t> told,
                    std::int64_t tensor = 8) {
  const auto towers = settle_towers({tower}, told, tensor);
  if (!towers) return towers.error().text();
  return towers->empty() ? "as the language model"
                         : fmt::format("{} as {}", (*towers)[0].size, (*towers)[0].reason);
}

TEST(Towers, AreSettledByWhatIsToldThenByBytesThenByShapes) {
  TowerEvidence tower = encoder();
  EXPECT_EQ(settled(tower, {}), "as the language model");
  EXPECT_EQ(settled(tower, 0), "as the language model");
  EXPECT_EQ(settled(tower, 8), "as the language model");
  EXPECT_EQ(settled(tower, 2), "2 as encoder_tensor_model_parallel_size says");
  tower.by_projection = TowerClue{"p", 4};
  EXPECT_EQ(settled(tower, {}), "4 as the columns of p show");
  EXPECT_EQ(settled(tower, 2), "2 as encoder_tensor_model_parallel_size says");
  EXPECT_EQ(settled(tower, {}, 6), "as the language model") << "4 does not divide 6";
  tower.by_patch = TowerClue{"e", 2};
  EXPECT_EQ(settled(tower, {}), "2 as the rows of e show");
  tower.by_bytes = {{"b", 2}};
  EXPECT_EQ(settled(tower, {}), "2 as the bytes of b show");
}

TEST(Towers, AreRefusedWhereCluesContradict) {
  TowerEvidence tower = encoder();
  EXPECT_THAT(settled(tower, 3), AllOf(HasSubstr("SW0313"), HasSubstr("vision_model: found"),
                                       HasSubstr("size 3"), HasSubstr("divisor of the 8")));
  tower.by_bytes = {{"vision_model.b", 4}};
  for (const std::int64_t told : {1, 2, 8}) {
    EXPECT_THAT(settled(tower, told),
                AllOf(HasSubstr("tensor vision_model.b: found 4 different shards of it in 8"),
                      HasSubstr(fmt::format("expected {}, so that ranks t and t+{}", told, told)),
                      HasSubstr("as encoder_tensor_model_parallel_size says")));
  }
  tower.by_patch = TowerClue{"vision_model.e", 8};
  EXPECT_THAT(settled(tower, {}), HasSubstr("tensor vision_model.e: found 8 different"));
  tower.by_bytes.clear();
  EXPECT_THAT(settled(tower, 2), HasSubstr("tensor vision_model.e: found 8 different"));
  tower.by_patch.reset();
  tower.by_bytes = {{"a", 8}, {"b", 4}, {"c", 4}};
  EXPECT_THAT(settled(tower, {}),
              AllOf(HasSubstr("tensor a: found 8 different"), HasSubstr("as the bytes of b show")));
  tower.by_bytes = {{"a", 4}, {"b", 8}};
  EXPECT_THAT(settled(tower, {}), HasSubstr("tensor b: found 8 different"));
}

TEST(Towers, WithoutLayersAreNotWhatIsTold) {
  TowerEvidence projection{"vision_projection", false, {{"p", 8}}, {}, {}};
  EXPECT_EQ(settled(projection, 2), "as the language model");
  projection.by_bytes.clear();
  EXPECT_EQ(settled(projection, 2), "2 as encoder_tensor_model_parallel_size says");
}

}  // namespace
}  // namespace shardwright

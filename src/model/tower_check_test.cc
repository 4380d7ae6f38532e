// SPDX-License-Identifier: Apache-2.0
#include "model/tower_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace shardwright {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<TensorDesc> tower(const std::string& prefix, int layers) {
  std::vector<TensorDesc> tensors;
  for (int layer = 0; layer < layers; ++layer) {
    const std::string stem = prefix + std::to_string(layer) + ".";
    for (const char* linear : {"q_proj", "k_proj", "v_proj", "out_proj"}) {
      tensors.push_back({stem + linear + ".weight", DType::kF32, {8, 8}});
    }
    tensors.push_back({stem + "fc1.weight", DType::kF32, {12, 8}});
  }
  // A sequence of two linears is no layers.
  tensors.push_back({"model.visual.merger.mlp.0.weight", DType::kF32, {16, 8}});
  tensors.push_back({"model.visual.merger.mlp.2.weight", DType::kF32, {20, 16}});
  return tensors;
}

std::vector<std::string> keys_of(const Arguments& values, const std::vector<TensorDesc>& hf) {
  HfConfig config;
  config.values = values;
  std::vector<std::string> keys;
  for (const Contradiction& each : contradicted_towers(config, hf)) keys.push_back(each.argument);
  return keys;
}

Arguments vision(std::int64_t layers, std::int64_t hidden, std::int64_t ffn) {
  return {{"vision_config.depth", layers},
          {"vision_config.hidden_size", hidden},
          {"vision_config.intermediate_size", ffn}};
}

TEST(TowerCheck, HoldsSizesAgainstTensors) {
  const auto tensors = tower("model.visual.blocks.", 3);
  EXPECT_THAT(keys_of(vision(3, 8, 12), tensors), IsEmpty());
  EXPECT_THAT(keys_of(vision(4, 8, 12), tensors), ElementsAre("vision_config.depth"));
  EXPECT_THAT(keys_of(vision(2, 8, 12), tensors), ElementsAre("vision_config.depth"));
  EXPECT_THAT(keys_of(vision(3, 9, 12), tensors), ElementsAre("vision_config.hidden_size"));
  EXPECT_THAT(keys_of(vision(3, 8, 13), tensors), ElementsAre("vision_config.intermediate_size"));
  // Gates and what they gate may be in one linear; a merger's width may be meant.
  EXPECT_THAT(keys_of(vision(3, 20, 6), tensors), IsEmpty());
}

TEST(TowerCheck, LooksAtEachTowerByItself) {
  auto tensors = tower("model.visual.blocks.", 3);
  const auto audio = tower("audio_tower.layers.", 2);
  const auto talker = tower("talker.visual.layers.", 7);
  tensors.insert(tensors.end(), audio.begin(), audio.end());
  tensors.insert(tensors.end(), talker.begin(), talker.end());
  Arguments values = vision(3, 8, 12);
  values.insert_or_assign("thinker_config.audio_config.encoder_layers", std::int64_t{2});
  EXPECT_THAT(keys_of(values, tensors), IsEmpty());
  EXPECT_THAT(keys_of(vision(7, 8, 12), tensors), ElementsAre("vision_config.depth"));
  values.insert_or_assign("thinker_config.audio_config.encoder_layers", std::int64_t{3});
  EXPECT_THAT(keys_of(values, tensors), ElementsAre("thinker_config.audio_config.encoder_layers"));
}

TEST(TowerCheck, OfWhatIsNotThereSaysNothing) {
  const std::vector<TensorDesc> text = {{"model.embed_tokens.weight", DType::kF32, {9, 4}}};
  EXPECT_THAT(keys_of(vision(4, 9, 12), text), IsEmpty());
  const std::vector<TensorDesc> projector = {{"vision_proj.0.weight", DType::kF32, {4, 8}},
                                             {"vision_proj.2.weight", DType::kF32, {4, 4}}};
  EXPECT_THAT(keys_of(vision(4, 9, 12), projector), IsEmpty()) << "the tower has another name";
  EXPECT_THAT(keys_of({{"vision_config.depth", std::int64_t{-1}}}, tower("visual.blocks.", 3)),
              IsEmpty());
  EXPECT_THAT(keys_of({{"num_hidden_layers", std::int64_t{7}}}, tower("visual.blocks.", 3)),
              IsEmpty());
}

}  // namespace
}  // namespace shardwright

// SPDX-License-Identifier: Apache-2.0
#include "layout/lost_siblings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace shardwright {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// A tower of a few layers, each with what a transformer's have.
std::vector<TensorDesc> tower(int layers) {
  std::vector<TensorDesc> tensors = {
      {"vision_tower.position_embedding.weight", DType::kF32, {9, 4}}};
  for (int layer = 0; layer < layers; ++layer) {
    const std::string stem = "vision_tower.blocks." + std::to_string(layer) + ".";
    for (const char* linear : {"attn.q_proj", "attn.k_proj", "mlp.fc1"}) {
      tensors.push_back({stem + linear + ".weight", DType::kF32, {4, 4}});
      tensors.push_back({stem + linear + ".bias", DType::kF32, {4}});
    }
    tensors.push_back({stem + "norm1.weight", DType::kF32, {4}});
  }
  return tensors;
}

std::set<std::string> lost(const std::vector<TensorDesc>& tensors,
                           const std::vector<std::string>& gone) {
  std::vector<const TensorDesc*> left;
  for (const TensorDesc& tensor : tensors) {
    if (std::ranges::find(gone, tensor.name) == gone.end()) left.push_back(&tensor);
  }
  std::set<std::string> names = lost_siblings(left);
  names.merge(lost_weights(left));
  return names;
}

TEST(LostSiblings, AreWhatOtherLayersHave) {
  EXPECT_THAT(lost(tower(3), {}), IsEmpty());
  for (const std::string gone :
       {"vision_tower.blocks.0.attn.k_proj.weight", "vision_tower.blocks.1.attn.k_proj.bias",
        "vision_tower.blocks.2.norm1.weight", "vision_tower.blocks.0.norm1.weight"}) {
    EXPECT_THAT(lost(tower(3), {gone}), ElementsAre(gone));
    EXPECT_THAT(lost(tower(2), {gone.substr(0, 20) + "1" + gone.substr(21)}),
                ElementsAre(gone.substr(0, 20) + "1" + gone.substr(21)));
  }
}

TEST(LostSiblings, AreAWholeModule) {
  const std::vector<std::string> linear = {"vision_tower.blocks.1.mlp.fc1.bias",
                                           "vision_tower.blocks.1.mlp.fc1.weight"};
  EXPECT_THAT(lost(tower(3), linear), testing::ElementsAreArray(linear));
}

// What few layers have is theirs: the shortcut of a stage's first block, positions that all share.
TEST(LostSiblings, AreNotWhatFewHave) {
  std::vector<TensorDesc> tensors = tower(3);
  tensors.push_back({"vision_tower.blocks.0.downsample.weight", DType::kF32, {4, 4}});
  EXPECT_THAT(lost(tensors, {}), IsEmpty());
  tensors = tower(2);
  tensors.push_back({"vision_tower.blocks.0.relative_bias.weight", DType::kF32, {4, 4}});
  EXPECT_THAT(lost(tensors, {}), IsEmpty());
  tensors = tower(4);
  tensors.push_back({"vision_tower.blocks.1.global.weight", DType::kF32, {4, 4}});
  tensors.push_back({"vision_tower.blocks.3.global.weight", DType::kF32, {4, 4}});
  EXPECT_THAT(lost(tensors, {}), IsEmpty()) << "two kinds of layers";
}

// A layer without two modules is of another kind.
TEST(LostSiblings, AreOfOneModule) {
  const std::string layer = "vision_tower.blocks.1.";
  EXPECT_THAT(lost(tower(3), {layer + "attn.q_proj.weight", layer + "attn.q_proj.bias",
                              layer + "attn.k_proj.weight", layer + "attn.k_proj.bias"}),
              IsEmpty());
}

TEST(LostWeights, AreThoseOfBiases) {
  std::vector<TensorDesc> tensors = {{"vision_tower.patch.bias", DType::kF32, {4}},
                                     {"vision_tower.patch.weight", DType::kF32, {4, 3}},
                                     {"vision_tower.table", DType::kF32, {4}}};
  EXPECT_THAT(lost(tensors, {}), IsEmpty());
  EXPECT_THAT(lost(tensors, {"vision_tower.patch.bias"}), IsEmpty()) << "some have none";
  EXPECT_THAT(lost(tensors, {tensors[1].name}), ElementsAre(tensors[1].name));
}

}  // namespace
}  // namespace shardwright

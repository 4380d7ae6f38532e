// SPDX-License-Identifier: Apache-2.0
#include "layout/lost_parts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace shardwright {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<std::string> names_of(const std::vector<LostPart>& lost) {
  std::vector<std::string> names;
  for (const LostPart& part : lost) names.push_back(part.name);
  return names;
}

TEST(LostParts, AreLayersBetweenTheFirstAndTheLast) {
  const std::vector<TensorDesc> tensors = {{"decoder.layers.0.w", DType::kBF16, {1}},
                                           {"decoder.layers.2.w", DType::kBF16, {1}}};
  EXPECT_EQ(count_named_layers(tensors), 2);
  EXPECT_THAT(names_of(lost_parts(tensors, 0)), ElementsAre("decoder.layers"));
  const std::vector<TensorDesc> whole = {tensors[0], {"decoder.layers.1.w", DType::kBF16, {1}}};
  EXPECT_THAT(names_of(lost_parts(whole, 2)), IsEmpty());
  EXPECT_THAT(lost_parts(whole, 4).at(0).what, testing::HasSubstr("none of 2, 3"));
}

// A run that trains adapters of some layers has lost none.
TEST(LostParts, AdaptersOfSomeLayersAreWhole) {
  std::vector<TensorDesc> tensors;
  for (const char* layer : {"0", "2"}) {
    const std::string stem = std::string("decoder.layers.") + layer + ".mlp.";
    tensors.push_back({stem + "linear_fc2.adapter.linear_in.weight", DType::kBF16, {2, 4}});
    tensors.push_back({stem + "linear_fc1.lora_B.default.weight", DType::kBF16, {4, 2}});
    tensors.push_back({stem + "router.modules_to_save.default.weight", DType::kBF16, {4, 2}});
  }
  EXPECT_THAT(names_of(lost_parts(tensors, 5)), IsEmpty());
  EXPECT_EQ(count_named_layers(tensors), 0);
  EXPECT_THAT(layers_without_adapters(tensors, 5), ElementsAre("1", "3", "4"));
  EXPECT_THAT(layers_without_adapters(tensors, 0), ElementsAre("1"));
  // The base beside them is held against its layers.
  tensors.push_back({"decoder.layers.1.w", DType::kBF16, {1}});
  EXPECT_THAT(names_of(lost_parts(tensors, 0)), ElementsAre("decoder.layers"));
  EXPECT_THAT(layers_without_adapters({}, 5), IsEmpty());
}

TEST(LostParts, AreExpertsThatTheRouterHas) {
  const std::string mlp = "decoder.layers.0.mlp.";
  std::vector<TensorDesc> tensors = {
      {mlp + "router.weight", DType::kBF16, {4, 8}},
      {mlp + "experts.experts.linear_fc1.weight", DType::kBF16, {4, 6, 8}}};
  EXPECT_THAT(names_of(lost_parts(tensors, 0)), IsEmpty());
  tensors[1].shape = {2, 6, 8};
  EXPECT_THAT(names_of(lost_parts(tensors, 0)),
              ElementsAre(mlp + "experts.experts.linear_fc1.weight"));
}

TEST(LostParts, AreExpertsOfRanksThatStackThem) {
  std::vector<TensorDesc> tensors = {{"m.0.mlp.router.weight", DType::kBF16, {4, 8}},
                                     {"m.0.mlp.experts.fc2.weight0", DType::kBF16, {16, 6}},
                                     {"m.0.mlp.experts.fc2.weight1", DType::kBF16, {16, 6}}};
  EXPECT_THAT(names_of(lost_local_experts(tensors)), IsEmpty());
  tensors[1].shape = tensors[2].shape = {8, 6};
  EXPECT_THAT(names_of(lost_local_experts(tensors)), ElementsAre("m.0.mlp.experts.fc2.weight*"));
}

}  // namespace
}  // namespace shardwright

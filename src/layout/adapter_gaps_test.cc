// SPDX-License-Identifier: Apache-2.0
#include "layout/adapter_gaps.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace shardwright {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

void add_adapter(int layer, const std::string& module, std::vector<TensorDesc>& tensors) {
  for (const std::string part : {"in", "out"}) {
    tensors.push_back({"decoder.layers." + std::to_string(layer) + "." + module +
                           ".adapter.linear_" + part + ".weight",
                       DType::kBF16,
                       {4, 4}});
  }
}

TEST(AdapterGaps, AreModulesThatMostLayersHaveAdapted) {
  std::vector<TensorDesc> tensors;
  for (int layer = 0; layer < 4; ++layer) {
    add_adapter(layer, "self_attention.linear_qkv", tensors);
    if (layer != 1) add_adapter(layer, "self_attention.linear_proj", tensors);
    if (layer != 1 && layer != 3) add_adapter(layer, "mlp.linear_fc1", tensors);
  }
  EXPECT_THAT(adapter_gaps(tensors),
              ElementsAre("mlp.linear_fc1 of layers 3", "self_attention.linear_proj of layers 1"));
}

// Of Mamba, attention and experts.
TEST(AdapterGaps, AreNotBetweenLayersOfOtherKinds) {
  std::vector<TensorDesc> tensors;
  add_adapter(0, "mixer.in_proj", tensors);
  add_adapter(1, "mixer.in_proj", tensors);
  add_adapter(2, "self_attention.linear_qkv", tensors);
  add_adapter(2, "mlp.linear_fc1", tensors);
  add_adapter(3, "self_attention.linear_qkv", tensors);
  add_adapter(3, "mlp.shared_experts.linear_fc1", tensors);
  add_adapter(4, "self_attention.linear_qkv", tensors);
  add_adapter(4, "mlp.shared_experts.linear_fc1", tensors);
  EXPECT_THAT(adapter_gaps(tensors), IsEmpty());
}

TEST(AdapterGaps, AreNotWhereTheBaseLacksTheModule) {
  std::vector<TensorDesc> tensors;
  for (int layer = 0; layer < 3; ++layer) {
    const std::string name = "decoder.layers." + std::to_string(layer) + ".mlp.experts.linear_fc1";
    add_adapter(layer, "self_attention.linear_qkv", tensors);
    if (layer > 0) add_adapter(layer, "mlp.experts.linear_fc1", tensors);
    if (layer > 0) tensors.push_back({name + ".weight", DType::kBF16, {4, 4}});
  }
  EXPECT_THAT(adapter_gaps(tensors), IsEmpty());
  tensors.push_back({"decoder.layers.0.mlp.experts.linear_fc1.weight", DType::kBF16, {4, 4}});
  EXPECT_THAT(adapter_gaps(tensors), ElementsAre("mlp.experts.linear_fc1 of layers 0"));
}

TEST(AdapterGaps, AreNoneOfStackedLayers) {
  const TensorDesc stacked{
      "decoder.layers.mlp.linear_fc1.adapter.linear_in.weight", DType::kBF16, {3, 4, 4}};
  EXPECT_THAT(adapter_gaps(std::vector{stacked}), IsEmpty());
}

}  // namespace
}  // namespace shardwright

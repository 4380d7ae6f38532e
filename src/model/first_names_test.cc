// SPDX-License-Identifier: Apache-2.0
#include "model/first_names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/golden_family.h"

namespace shardwright {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

// One layer.
const std::vector<TensorDesc> kModel = {
    {"embedding.word_embeddings.weight", DType::kBF16, {7, 8}},
    {"decoder.layers.0.self_attention.linear_qkv.layer_norm_weight", DType::kBF16, {8}},
    {"decoder.layers.0.self_attention.linear_qkv.weight", DType::kBF16, {16, 8}},
    {"decoder.layers.0.self_attention.linear_proj.weight", DType::kBF16, {8, 8}},
    {"decoder.layers.0.mlp.linear_fc1.layer_norm_weight", DType::kBF16, {8}},
    {"decoder.layers.0.mlp.linear_fc1.weight", DType::kBF16, {24, 8}},
    {"decoder.layers.0.mlp.linear_fc2.weight", DType::kBF16, {8, 12}},
    {"decoder.final_layernorm.weight", DType::kBF16, {8}},
    {"output_layer.weight", DType::kBF16, {7, 8}},
};

FirstNames names_of(std::vector<TensorDesc> tensors) {
  const ModelSizes sizes = {{"layers", 1},   {"hidden", 8}, {"heads", 4}, {"groups", 2},
                            {"head_dim", 2}, {"ffn", 12},   {"vocab", 7}, {"tied", 0}};
  return first_names(shipped("llama"), sizes, tensors).value();
}

TEST(FirstNames, AreTheRulesForTheOthers) {
  std::vector<TensorDesc> tensors = kModel;
  EXPECT_THAT(names_of(tensors), IsEmpty());
  tensors[4].name = "decoder.layers.0.pre_mlp_layernorm.weight";
  EXPECT_THAT(names_of(tensors), ElementsAre(Pair(tensors[4].name, kModel[4].name)));
}

TEST(FirstNames, AreNoneOfAPartOfAModel) {
  std::vector<TensorDesc> tensors = kModel;
  tensors[4].name = "decoder.layers.0.pre_mlp_layernorm.weight";
  tensors.pop_back();
  EXPECT_THAT(names_of(tensors), IsEmpty());
}

}  // namespace
}  // namespace shardwright

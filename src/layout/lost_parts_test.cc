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
      {mlp + "experts.experts.linear_fc1.weight", DType::kBF16, {4, 6, 8}},
      {mlp + "experts.experts.linear_fc2.weight", DType::kBF16, {4, 8, 6}}};
  EXPECT_THAT(names_of(lost_parts(tensors, 0)), IsEmpty());
  tensors[1].shape = {2, 6, 8};
  EXPECT_THAT(names_of(lost_parts(tensors, 0)),
              ElementsAre(mlp + "experts.experts.linear_fc1.weight"));
}

std::vector<TensorDesc> described(const std::vector<std::string>& names) {
  std::vector<TensorDesc> tensors;
  for (const std::string& name : names) tensors.push_back({name, DType::kBF16, {4, 8}});
  return tensors;
}

// Nothing but the module itself says so: no family need be known.
TEST(LostParts, AreTensorsThatAModuleNeverLacks) {
  const std::string layer = "decoder.layers.0.";
  struct Case {
    std::string present;
    std::string missing;
  };
  const std::vector<Case> cases = {
      {"mlp.linear_fc1.weight", "mlp.linear_fc2.weight"},
      {"mlp.linear_fc2.weight", "mlp.linear_fc1.weight"},
      {"mlp.experts.experts.linear_fc1.weight", "mlp.experts.experts.linear_fc2.weight"},
      {"mlp.experts.linear_fc2.weight12", "mlp.experts.linear_fc1.weight12"},
      {"mlp.experts.local_experts.3.linear_fc1.weight",
       "mlp.experts.local_experts.3.linear_fc2.weight"},
      {"mlp.experts.weight1", "mlp.experts.weight2"},
      {"mlp.experts.weight2", "mlp.experts.weight1"},
      {"self_attention.linear_qkv.weight", "self_attention.linear_proj.weight"},
  };
  for (const Case& each : cases) {
    std::vector<std::string> names = {layer + each.present};
    if (each.present.contains("experts")) names.push_back(layer + "mlp.router.bias");
    EXPECT_THAT(names_of(lost_parts(described(names), 0)), ElementsAre(layer + each.missing));
    names.push_back(layer + each.missing);
    EXPECT_THAT(lost_parts(described(names), 0), IsEmpty());
  }
  const std::string output = layer + "self_attention.linear_proj.weight";
  EXPECT_THAT(names_of(lost_parts(described({output}), 0)),
              ElementsAre(layer + "self_attention.linear_q*"));
  for (const char* other : {"linear_q_proj.weight", "linear_kv_down_proj.weight"}) {
    EXPECT_THAT(lost_parts(described({output, layer + "self_attention." + other}), 0), IsEmpty());
  }
  // A module of somebody's own.
  EXPECT_THAT(lost_parts(described({layer + "self_attention.linear_qkv.weight",
                                    layer + "self_attention.linear_warp.weight"}),
                         0),
              IsEmpty());
  const std::string router = layer + "mlp.router.weight";
  EXPECT_THAT(names_of(lost_parts(described({router}), 0)), ElementsAre(layer + "mlp.experts.*"));
  // Not of adapters: a run may train those of one linear.
  EXPECT_THAT(lost_parts(described({layer + "mlp.linear_fc1.adapter.linear_in.weight"}), 0),
              IsEmpty());
}

// Who leaves experts out does not miss those that are lost.
TEST(LostParts, OfExpertsAreToldApart) {
  const std::string layer = "decoder.layers.0.mlp.";
  EXPECT_THAT(names_of(lost_parts(described({layer + "experts.linear_fc1.weight0",
                                             layer + "router.bias", layer + "linear_fc1.weight"}),
                                  0)),
              ElementsAre(layer + "linear_fc2.weight", layer + "experts.linear_fc2.weight0"));
}

TEST(LostParts, AreRoutersOfExpertsThatAreThere) {
  const std::string layer = "decoder.layers.1.mlp.";
  const std::vector<std::string> experts = {layer + "experts.experts.linear_fc1.weight",
                                            layer + "experts.experts.linear_fc2.weight"};
  const std::vector<LostPart> lost = lost_parts(described(experts), 0);
  ASSERT_THAT(names_of(lost), ElementsAre("decoder.layers", layer + "experts."));
  EXPECT_THAT(lost[1].what, testing::HasSubstr(layer + "router.weight"));
}

// Two layers with all that a layer may have between an embedding and a norm.
std::vector<std::string> whole_model() {
  std::vector<std::string> names = {"embedding.word_embeddings.weight",
                                    "decoder.final_layernorm.weight"};
  for (const char* number : {"0", "1", "2"}) {
    for (const char* tensor :
         {"input_layernorm.weight", "self_attention.linear_qkv.weight",
          "self_attention.linear_proj.weight", "pre_mlp_layernorm.weight", "mlp.router.weight",
          "mlp.experts.linear_fc1.weight", "mlp.experts.linear_fc2.weight",
          "mlp.shared_experts.linear_fc1.weight", "mlp.shared_experts.linear_fc2.weight"}) {
      names.push_back(std::string("decoder.layers.") + number + "." + tensor);
    }
  }
  return names;
}

TEST(LostParts, AreEitherEndOfAModelThatHasTheOther) {
  EXPECT_THAT(names_of(lost_parts(described(whole_model()), 0)), IsEmpty());
  for (const char* end : {"embedding.word_embeddings.weight", "decoder.final_layernorm.weight"}) {
    std::vector<std::string> names = whole_model();
    std::erase(names, end);
    EXPECT_THAT(names_of(lost_parts(described(names), 0)), ElementsAre(end));
  }
  std::vector<std::string> no_ends = whole_model();  // a tower's
  no_ends.erase(no_ends.begin(), no_ends.begin() + 2);
  EXPECT_THAT(names_of(lost_parts(described(no_ends), 0)), IsEmpty());
  // Layers that end with their norms have none behind them.
  const std::vector<std::string> post_norm = {"embedding.word_embeddings.weight",
                                              "decoder.layers.0.self_attention.linear_qkv.weight",
                                              "decoder.layers.0.self_attention.linear_proj.weight"};
  EXPECT_THAT(names_of(lost_parts(described(post_norm), 0)), IsEmpty());
}

TEST(LostParts, AreWhatOtherLayersOfTheStackHave) {
  for (const char* tensor : {"input_layernorm.weight", "pre_mlp_layernorm.weight"}) {
    std::vector<std::string> names = whole_model();
    const std::string lost = std::string("decoder.layers.1.") + tensor;
    std::erase(names, lost);
    EXPECT_THAT(names_of(lost_parts(described(names), 0)), ElementsAre(lost));
    // Other software has it in the linear behind it.
    names.push_back(std::string("decoder.layers.1.") +
                    (lost.contains("input") ? "self_attention.linear_qkv" : "mlp.linear_fc1") +
                    ".layer_norm_weight");
    EXPECT_THAT(names_of(lost_parts(described(names), 0)), IsEmpty());
  }
  std::vector<std::string> names = whole_model();
  std::erase_if(names, [](const std::string& name) { return name.contains("2.mlp.shared"); });
  EXPECT_THAT(names_of(lost_parts(described(names), 0)),
              ElementsAre("decoder.layers.2.mlp.shared_experts.linear_fc1.weight"));
  // Those of a hybrid are of several kinds.
  std::vector<std::string> hybrid = whole_model();
  for (std::string& name : hybrid) {
    if (name == "decoder.layers.1.pre_mlp_layernorm.weight")
      name = "decoder.layers.1.post_norm.weight";
  }
  EXPECT_THAT(names_of(lost_parts(described(hybrid), 0)), IsEmpty());
  // Layers without experts of their own have no shared ones.
  std::erase_if(names, [](const std::string& name) { return name.contains("2.mlp."); });
  EXPECT_THAT(names_of(lost_parts(described(names), 0)), IsEmpty());
}

TEST(LostParts, OfManyLayersAreToldOnce) {
  std::vector<std::string> names;
  for (int i = 0; i < 40; ++i) {
    names.push_back("decoder.layers." + std::to_string(i) + ".mlp.linear_fc1.weight");
  }
  const std::vector<LostPart> lost = lost_parts(described(names), 40);
  ASSERT_EQ(lost.size(), 1U);
  EXPECT_THAT(lost[0].what, testing::HasSubstr("decoder.layers.0.mlp.linear_fc2.weight, "));
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

// SPDX-License-Identifier: Apache-2.0
#include "model/adapter_rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/apply.h"
#include "model/golden_family.h"
#include "model/sample_model.h"

namespace shardwright {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::UnorderedElementsAre;

constexpr const char* kLayer = "decoder.layers.1.";

TensorDesc part(const std::string& name, Dims shape) {
  return {kLayer + name, DType::kBF16, std::move(shape)};
}

std::vector<std::string> made_of(const std::vector<TensorDesc>& canonical) {
  const SampleModel model;
  const auto made = map_from_megatron(shipped("llama"), model.sizes(), canonical);
  if (!made) return {made.error().text()};
  std::vector<std::string> names;
  for (const MappedTensor& tensor : made->hf) {
    names.push_back(tensor.desc.name + " " + to_string(tensor.desc.shape));
  }
  for (const HfCopy& copy : made->copies) names.push_back(copy.desc.name + " = " + copy.original);
  return names;
}

struct Sizes {
  const ModelSizes all = SampleModel().sizes();
  std::int64_t hidden = all.at("hidden");
  std::int64_t queries = all.at("heads") * all.at("head_dim");
  std::int64_t keys = all.at("groups") * all.at("head_dim");
  std::int64_t fused = queries + 2 * keys;
};

TEST(AdapterRules, AFusedModuleSharesItsA) {
  const Sizes sizes;
  const std::string stem = "base_model.model.model.layers.1.self_attn.";
  for (const auto& [in, out] :
       {std::pair(".adapter.linear_in.weight", ".adapter.linear_out.weight"),
        std::pair(".lora_A.default.weight", ".lora_B.default.weight")}) {
    const std::string module = "self_attention.linear_qkv";
    EXPECT_THAT(
        made_of({part(module + in, {2, sizes.hidden}), part(module + out, {sizes.fused, 2})}),
        UnorderedElementsAre(stem + "q_proj.lora_A.weight " + to_string(Dims{2, sizes.hidden}),
                             stem + "q_proj.lora_B.weight " + to_string(Dims{sizes.queries, 2}),
                             stem + "k_proj.lora_B.weight " + to_string(Dims{sizes.keys, 2}),
                             stem + "v_proj.lora_B.weight " + to_string(Dims{sizes.keys, 2}),
                             stem + "k_proj.lora_A.weight = " + stem + "q_proj.lora_A.weight",
                             stem + "v_proj.lora_A.weight = " + stem + "q_proj.lora_A.weight"));
  }
}

TEST(AdapterRules, TheCanonicalFormHasOneForEach) {
  const Sizes sizes;
  const std::string module = "self_attention.linear_qkv.adapter.adapter_v.";
  const std::string stem = "base_model.model.model.layers.1.self_attn.v_proj.";
  EXPECT_THAT(made_of({part(module + "linear_in.weight", {2, sizes.hidden}),
                       part(module + "linear_out.weight", {sizes.keys, 2})}),
              UnorderedElementsAre(stem + "lora_A.weight " + to_string(Dims{2, sizes.hidden}),
                                   stem + "lora_B.weight " + to_string(Dims{sizes.keys, 2})));
}

// One with too few rows would be added to the wrong ones, or to none.
TEST(AdapterRules, TheCanonicalFormHasTheRowsOfItsModule) {
  const Sizes sizes;
  const std::int64_t inner = SampleModel().sizes().at("ffn");
  for (const auto& [name, rows] :
       {std::pair("self_attention.linear_qkv.adapter.adapter_q.", sizes.queries),
        std::pair("self_attention.linear_qkv.adapter.adapter_k.", sizes.keys),
        std::pair("mlp.linear_fc1.adapter.adapter_up.", inner)}) {
    const std::string module = name;
    const auto made = [&](std::int64_t own) {
      return made_of({part(module + "linear_in.weight", {2, sizes.hidden}),
                      part(module + "linear_out.weight", {own, 2})});
    };
    EXPECT_EQ(made(rows).size(), 2U) << name;
    EXPECT_THAT(made(rows - 1), ElementsAre(HasSubstr(module + "linear_out.weight"))) << name;
    EXPECT_THAT(made(2 * rows), ElementsAre(HasSubstr(module + "linear_out.weight"))) << name;
  }
}

TEST(AdapterRules, OtherShapesThanTheBasesAreRefused) {
  const Sizes sizes;
  const std::string module = "self_attention.linear_proj.adapter.";
  EXPECT_THAT(made_of({part(module + "linear_in.weight", {2, sizes.queries + 1}),
                       part(module + "linear_out.weight", {sizes.hidden, 2})}),
              ElementsAre(HasSubstr("linear_in.weight")));
  EXPECT_THAT(made_of({part("mlp.experts.linear_fc1.adapter.linear_in.weight", {2, sizes.hidden}),
                       part("mlp.experts.linear_fc1.adapter.linear_out.weight", {4, 2})}),
              ElementsAre(HasSubstr("2 tensors without a rule")));
}

TEST(AdapterRules, SomeRowsAreInTheOrderOfRanks) {
  const std::string layer = "decoder.layers.mlp.";
  for (const char* name :
       {"linear_fc1.lora_B.default.weight", "linear_fc1.lora_B.weight", "in_proj.lora_B.weight",
        "linear_fc1.adapter.adapter_gate.linear_out.weight", "linear_fc1.adapter.weight_magnitude",
        "experts.experts.linear_fc1.adapter.adapter_up.linear_out.weight"}) {
    EXPECT_TRUE(is_in_rank_order(layer + name)) << name;
  }
  for (const char* name :
       {"linear_fc1.lora_A.default.weight", "linear_fc2.lora_B.weight", "linear_fc1.weight",
        "linear_fc1.adapter.linear_out.weight", "linear_fc2.adapter.weight_magnitude",
        "linear_fc1.adapter.adapter_gate.linear_in.weight",
        "experts.experts.linear_fc1.lora_B.default.weight"}) {
    EXPECT_FALSE(is_in_rank_order(layer + name)) << name;
  }
}

TEST(AdapterRank, IsOneForAllAndHalvesComeInPairs) {
  const std::vector<TensorDesc> none = {part("mlp.linear_fc2.weight", {6, 4})};
  EXPECT_FALSE(adapter_ranks(none).value().has_value());
  std::vector<TensorDesc> tensors = {part("mlp.linear_fc2.adapter.linear_in.weight", {2, 6}),
                                     part("mlp.linear_fc2.adapter.linear_out.weight", {4, 2})};
  EXPECT_EQ(adapter_ranks(tensors).value()->dense, 2);
  EXPECT_EQ(adapter_ranks(tensors).value()->experts, std::nullopt);
  tensors[1].shape = {4, 3};
  EXPECT_EQ(adapter_ranks(tensors).error().code, Code::kShapeMismatch);
  tensors.pop_back();
  const auto half = adapter_ranks(tensors);
  ASSERT_FALSE(half);
  EXPECT_EQ(half.error().code, Code::kUnmatchedTarget);
  EXPECT_THAT(half.error().message, HasSubstr("mlp.linear_fc2.adapter.linear_out.weight"));
  // Experts may have another one, whatever tells how many there are.
  const std::string experts = "mlp.experts.experts.linear_fc2.adapter.";
  std::vector<TensorDesc> routed = {part(experts + "linear_in.weight", {5, 3, 6}),
                                    part(experts + "linear_out.weight", {4, 3})};
  EXPECT_EQ(adapter_ranks(routed).value()->experts, 3);
  EXPECT_EQ(adapter_ranks(routed).value()->dense, std::nullopt);
  EXPECT_EQ(adapter_ranks(routed).value()->whole(), 3);
  routed[1].shape = {5, 4, 2};
  EXPECT_EQ(adapter_ranks(routed).error().code, Code::kShapeMismatch);
  // A linear of that name elsewhere is none.
  EXPECT_FALSE(is_adapter_name("vision_model.linear_in.weight"));
}

}  // namespace
}  // namespace shardwright

// SPDX-License-Identifier: Apache-2.0
#include "canonical/adapter_updates.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace shardwright::adapter_updates {
namespace {

using testing::HasSubstr;

StoredTensor stored(const std::string& name, const Dims& shape) {
  return {{"base_model.model." + name, DType::kF32, shape}, ChunkList(shape.size())};
}

// One module `model.q_proj` of rank 2 with 6 outputs and 8 inputs.
PeftAdapter adapter_of(bool is_transposed = false) {
  PeftAdapter adapter;
  adapter.path = "dir";
  adapter.weights_file = "adapter_model.safetensors";
  adapter.config.rank = 2;
  adapter.config.is_fan_in_fan_out = is_transposed;
  adapter.config.base_model = "org/base";
  adapter.catalog.tensors = {stored("model.q_proj.lora_A.weight", {2, 8}),
                             stored("model.q_proj.lora_B.weight", {6, 2})};
  adapter.modules = {{"model.q_proj", false, 0, 1, std::nullopt, std::nullopt}};
  return adapter;
}

Result<AdapterUpdates> match(const PeftAdapter& adapter, const std::vector<TensorDesc>& model,
                             const std::optional<TiedHead>& tied = std::nullopt) {
  return match_adapter(adapter, model, nullptr, tied);
}

TEST(AdapterUpdates, OutputsAreRowsUnlessTheConfigSaysOtherwise) {
  const auto plain = match(adapter_of(), {{"model.q_proj.weight", DType::kBF16, {6, 8}}});
  ASSERT_TRUE(plain) << plain.error().text();
  EXPECT_EQ(plain->updates.at(0).out_axis, 0);
  EXPECT_EQ(plain->updates[0].scale, 4.0F);
  const auto turned = match(adapter_of(true), {{"model.q_proj.weight", DType::kBF16, {8, 6}}});
  ASSERT_TRUE(turned) << turned.error().text();
  EXPECT_EQ(turned->updates.at(0).out_axis, 1);
  // A linear among such modules.
  const auto linear = match(adapter_of(true), {{"model.q_proj.weight", DType::kBF16, {6, 8}}});
  ASSERT_TRUE(linear) << linear.error().text();
  EXPECT_EQ(linear->updates.at(0).out_axis, 0);
}

// What a parameter of 3 experts has, with 6 outputs and `inputs` of them.
PeftAdapter adapter_of_experts(const std::string& parameter, std::int64_t inputs) {
  PeftAdapter adapter;
  adapter.path = "dir";
  adapter.weights_file = "adapter_model.safetensors";
  adapter.config.rank = 2;
  adapter.catalog.tensors = {stored("mlp.experts.lora_A.weight", {6, inputs}),
                             stored("mlp.experts.lora_B.weight", {6, 6}),
                             stored(parameter + ".lora_A.weight", {3, 2, inputs}),
                             stored(parameter + ".lora_B.weight", {3, 6, 2})};
  adapter.parameters = {{parameter, 2, 3, 0, 1}};
  LoraModule expert{"mlp.experts.0.down_proj", false, 0, 1, std::nullopt, std::nullopt};
  expert.configured = parameter;
  expert.stored_in = "base_model.model.mlp.experts.lora_A.weight";
  expert.stored_out = "base_model.model.mlp.experts.lora_B.weight";
  expert.experts = 3;
  adapter.modules = {expert};
  return adapter;
}

TEST(AdapterUpdates, ExpertsInOneTensorHaveTheAxesThatTheirShapeTells) {
  const std::string name = "mlp.experts.down_proj";
  const PeftAdapter adapter = adapter_of_experts(name, 8);
  const auto plain = match(adapter, {{name, DType::kBF16, {3, 6, 8}}});
  ASSERT_TRUE(plain) << plain.error().text();
  ASSERT_EQ(plain->updates.size(), 1U);
  EXPECT_TRUE(plain->updates[0].is_of_experts);
  EXPECT_EQ(std::pair(plain->updates[0].out_axis, plain->updates[0].in_axis), std::pair(1, 2));
  const auto turned = match(adapter, {{name, DType::kBF16, {3, 8, 6}}});
  ASSERT_TRUE(turned) << turned.error().text();
  EXPECT_EQ(std::pair(turned->updates[0].out_axis, turned->updates[0].in_axis), std::pair(2, 1));
  for (const Dims& shape : {Dims{4, 6, 8}, Dims{3, 6, 7}, Dims{3, 7, 8}, Dims{6, 8}}) {
    const auto other = match(adapter, {{name, DType::kBF16, shape}});
    ASSERT_FALSE(other) << to_string(shape);
    EXPECT_EQ(other.error().code, Code::kShapeMismatch);
    EXPECT_THAT(other.error().message, HasSubstr("base_model.model.mlp.experts.lora_"));
  }
  const auto neither = match(adapter, {{"mlp.router.weight", DType::kBF16, {3, 8}}});
  EXPECT_EQ(neither.error().code, Code::kUnmatchedSource);
  EXPECT_THAT(neither.error().message, HasSubstr("has neither mlp.experts.down_proj, which"));
}

// As many inputs as outputs: the other parameter shows where PEFT has A, and its version.
TEST(AdapterUpdates, SquareExpertsHaveTheAxesOfTheOthers) {
  const std::string down = "mlp.experts.down_proj";
  const std::string gate_up = "mlp.experts.gate_up_proj";
  PeftAdapter adapter = adapter_of_experts(down, 6);
  const auto in_axis = [&](const std::string& name, const std::vector<TensorDesc>& model) {
    const auto matched = match(adapter, model);
    if (!matched) return -1;
    const auto found = std::ranges::find(matched->updates, name, &ModelUpdate::tensor);
    return found == matched->updates.end() ? -2 : found->in_axis;
  };
  const TensorDesc square{down, DType::kBF16, {3, 6, 6}};
  const std::vector<TensorDesc> plain = {square, {gate_up, DType::kBF16, {3, 12, 6}}};
  const std::vector<TensorDesc> turned = {square, {gate_up, DType::kBF16, {3, 6, 12}}};
  EXPECT_EQ(in_axis(down, plain), 2);
  EXPECT_EQ(in_axis(down, turned), -1) << "its module may say either";
  EXPECT_THAT(match(adapter, turned).error().message, HasSubstr("nothing tells whether lora_A"));
  EXPECT_EQ(match(adapter, {square}).error().code, Code::kUnsupportedFormat);
  adapter.config.is_before_0_19 = true;
  EXPECT_EQ(in_axis(down, plain), 1);
  EXPECT_EQ(in_axis(down, turned), 1);
  EXPECT_EQ(in_axis(down, {square}), 1);
  adapter.config.is_before_0_19 = false;
  // With what was trained of gate and up: A over 6 or over 12 of them.
  for (const std::int64_t inputs : {6, 12}) {
    adapter = adapter_of_experts(down, 6);
    const auto at = static_cast<std::uint32_t>(adapter.catalog.tensors.size());
    adapter.catalog.tensors.push_back(stored(gate_up + ".lora_A.weight", {3, 2, inputs}));
    adapter.catalog.tensors.push_back(stored(gate_up + ".lora_B.weight", {3, 18 - inputs, 2}));
    adapter.parameters.push_back({gate_up, at, at + 1, 0, 1});
    EXPECT_EQ(in_axis(down, turned), inputs == 6 ? 1 : 2);
    EXPECT_EQ(in_axis(down, plain), inputs == 6 ? 2 : 1);
  }
  // The same of gate and up.
  adapter = adapter_of_experts(gate_up, 6);
  EXPECT_EQ(in_axis(gate_up, {{gate_up, DType::kBF16, {3, 6, 6}}, {down, DType::kBF16, {3, 6, 3}}}),
            2);
}

// One by one they are [outputs, inputs], which PEFT before 0.19 had A over the outputs of.
TEST(AdapterUpdates, SquareExpertsOneByOneAreOfANewerPeft) {
  PeftAdapter adapter = adapter_of_experts("mlp.experts.down_proj", 6);
  adapter.catalog.tensors.push_back(stored("0.lora_A.weight", {2, 6}));
  adapter.catalog.tensors.push_back(stored("0.lora_B.weight", {6, 2}));
  adapter.modules[0].in = 4;
  adapter.modules[0].out = 5;
  const std::vector<TensorDesc> model = {{"mlp.experts.0.down_proj.weight", DType::kBF16, {6, 6}}};
  const auto matched = match(adapter, model);
  ASSERT_TRUE(matched) << matched.error().text();
  EXPECT_EQ(matched->updates.size(), 1U);
  adapter.config.is_before_0_19 = true;
  const auto refused = match(adapter, model);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kUnsupportedFormat);
  EXPECT_THAT(refused.error().message, HasSubstr("parameter mlp.experts.down_proj: nothing tells"));
}

// Adapters have the names of modules, files of models that see often older ones.
TEST(AdapterUpdates, NamesOfTheSamePartMeanTheSame) {
  Mapping family;
  family.parts = {{"language", {{"model.", "model."}, {"model.language_model.", "model."}}, {}, {}},
                  {"images", {{"visual.", ""}, {"model.visual.", ""}}, {}, {}}};
  PeftAdapter adapter = adapter_of();
  adapter.modules[0].name = "model.language_model.q_proj";
  adapter.catalog.tensors.push_back(stored("model.visual.merger.weight", {2, 8}));
  adapter.saved = {{"model.visual.merger.weight", 2}};
  const std::vector<TensorDesc> model = {{"model.q_proj.weight", DType::kBF16, {6, 8}},
                                         {"visual.merger.weight", DType::kBF16, {2, 8}},
                                         {"visual.q_proj.weight", DType::kBF16, {6, 8}}};
  const auto matched = match_adapter(adapter, model, &family, std::nullopt);
  ASSERT_TRUE(matched) << matched.error().text();
  EXPECT_EQ(matched->updates.at(0).tensor, "model.q_proj.weight");
  EXPECT_EQ(matched->saved.at(0).name, "visual.merger.weight");
  EXPECT_FALSE(match(adapter, model)) << "without a family names are what they are";
  // Where the base has a tensor of that very name, it is that one.
  std::vector<TensorDesc> both = model;
  both.push_back({"model.language_model.q_proj.weight", DType::kBF16, {6, 8}});
  EXPECT_EQ(match_adapter(adapter, both, &family, std::nullopt)->updates.at(0).tensor,
            "model.language_model.q_proj.weight");
}

// Files may have names of their trainer's, which transformers gives up when it loads them.
TEST(AdapterUpdates, NamesOfModulesAreFoundInFiles) {
  Mapping family;
  family.modules = {parse_module_words("attention.dense", "self_attn.o_proj").value()};
  PeftAdapter adapter = adapter_of();
  adapter.modules[0].name = "model.self_attn.o_proj";
  const std::vector<TensorDesc> model = {{"model.attention.dense.weight", DType::kBF16, {6, 8}}};
  const auto matched = match_adapter(adapter, model, &family, std::nullopt);
  ASSERT_TRUE(matched) << matched.error().text();
  EXPECT_EQ(matched->updates.at(0).tensor, "model.attention.dense.weight");
}

TEST(AdapterUpdates, WhatIsListedToBeSavedIsThere) {
  const std::vector<TensorDesc> model = {{"model.q_proj.weight", DType::kBF16, {6, 8}},
                                         {"score.weight", DType::kBF16, {2, 8}},
                                         {"score.bias", DType::kBF16, {2}},
                                         {"head.weight", DType::kBF16, {30, 8}},
                                         {"embed.weight", DType::kBF16, {30, 8}}};
  PeftAdapter adapter = adapter_of();
  adapter.config.modules_to_save = {"score", "classifier"};  // PEFT lists both
  const auto message = [&](const std::optional<TiedHead>& tied = std::nullopt) {
    const auto matched = match(adapter, model, tied);
    return matched ? std::string() : matched.error().text();
  };
  EXPECT_THAT(message(), HasSubstr("dir: adapter_model.safetensors: found nothing of score.bias, "
                                   "score.weight, which adapter_config.json lists"));
  adapter.catalog.tensors.push_back(stored("score.weight", {2, 8}));
  adapter.saved.push_back({"score.weight", 2});
  EXPECT_THAT(message(), HasSubstr("found nothing of score.bias, which"));
  adapter.catalog.tensors.push_back(stored("score.bias", {2}));
  adapter.saved.push_back({"score.bias", 3});
  EXPECT_EQ(message(), "");
  // One for both, where they are the same.
  adapter.config.modules_to_save.push_back("head");
  EXPECT_THAT(message(), HasSubstr("found nothing of head.weight"));
  adapter.config.modules_to_save.push_back("embed");
  adapter.catalog.tensors.push_back(stored("embed.weight", {30, 8}));
  adapter.saved.push_back({"embed.weight", 4});
  EXPECT_THAT(message(), HasSubstr("found nothing of head.weight"));
  EXPECT_EQ(message(TiedHead{"embed.weight", "head.weight", true}), "");
}

TEST(AdapterUpdates, NamesBothTensorsThatDoNotFit) {
  const auto other = match(adapter_of(), {{"model.q_proj.weight", DType::kBF16, {8, 6}}});
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().code, Code::kShapeMismatch);
  EXPECT_THAT(other.error().message,
              HasSubstr("base_model.model.model.q_proj.lora_B.weight (6, 2) does not fit the base "
                        "model's model.q_proj.weight (8, 6)"));
  const auto wider = match(adapter_of(), {{"model.q_proj.weight", DType::kBF16, {6, 9}}});
  ASSERT_FALSE(wider);
  EXPECT_THAT(wider.error().message, HasSubstr("lora_A.weight (2, 8) does not fit"));
}

TEST(AdapterUpdates, NamesWhatTheModelLacks) {
  const auto lacking = match(adapter_of(), {{"model.k_proj.weight", DType::kBF16, {6, 8}}});
  ASSERT_FALSE(lacking);
  EXPECT_EQ(lacking.error().code, Code::kUnmatchedSource);
  EXPECT_THAT(lacking.error().message, HasSubstr("no tensor model.q_proj.weight"));
  EXPECT_THAT(lacking.error().message, HasSubstr("made for org/base"));
}

// A task of features is trained on the model without the class that has its head.
TEST(AdapterUpdates, NamesMayLackWhatTheBaseHasBeforeThem) {
  PeftAdapter adapter = adapter_of();
  adapter.modules[0].name = "q_proj";
  const TensorDesc own{"model.q_proj.weight", DType::kBF16, {6, 8}};
  const auto matched = match(adapter, {own, {"lm_head.weight", DType::kBF16, {9, 8}}});
  ASSERT_TRUE(matched) << matched.error().text();
  EXPECT_EQ(matched->updates.at(0).tensor, "model.q_proj.weight");
  EXPECT_FALSE(match(adapter, {own, {"tower.q_proj.weight", DType::kBF16, {6, 8}}})) << "which?";
}

TEST(AdapterUpdates, SaysThatTheBaseLacksATrainedHead) {
  PeftAdapter adapter = adapter_of();
  adapter.catalog.tensors.push_back(stored("score.weight", {2, 8}));
  adapter.saved.push_back({"score.weight", 2});
  const auto matched = match(adapter, {{"model.q_proj.weight", DType::kBF16, {6, 8}}});
  ASSERT_FALSE(matched);
  EXPECT_THAT(matched.error().message, HasSubstr("score.weight: a head that was trained with"));
}

TEST(AdapterUpdates, BiasesAndLengthsAreAddedToTheirOwn) {
  PeftAdapter adapter = adapter_of();
  adapter.catalog.tensors.push_back(stored("model.q_proj.lora_B.bias", {6}));
  adapter.catalog.tensors.push_back(stored("model.q_proj.lora_magnitude_vector", {6}));
  adapter.modules[0].bias = 2;
  adapter.modules[0].magnitude = 3;
  std::vector<TensorDesc> model = {{"model.q_proj.weight", DType::kBF16, {6, 8}}};
  EXPECT_THAT(match(adapter, model).error().message, HasSubstr("no tensor model.q_proj.bias"));
  model.push_back({"model.q_proj.bias", DType::kBF16, {6}});
  const auto both = match(adapter, model);
  ASSERT_TRUE(both) << both.error().text();
  EXPECT_EQ(both->updates.at(0).magnitude, 3U);
  EXPECT_EQ(both->updates.at(1).tensor, "model.q_proj.bias");
  EXPECT_EQ(both->updates.at(1).out, 2U);
  EXPECT_FALSE(both->updates.at(1).in);
  adapter.catalog.tensors[3] = stored("model.q_proj.lora_magnitude_vector", {8});
  EXPECT_EQ(match(adapter, model).error().code, Code::kShapeMismatch);
  adapter.catalog.tensors[3] = stored("model.q_proj.lora_magnitude_vector", {6});
  adapter.catalog.tensors[2] = stored("model.q_proj.lora_B.bias", {5});
  EXPECT_EQ(match(adapter, model).error().code, Code::kShapeMismatch);
}

// Only where the adapter touches one of them.
TEST(AdapterUpdates, AChangedHeadIsUntied) {
  const TiedHead tied{"model.embed_tokens.weight", "lm_head.weight", false};
  std::vector<TensorDesc> model = {{"model.embed_tokens.weight", DType::kBF16, {30, 8}},
                                   {"model.q_proj.weight", DType::kBF16, {6, 8}}};
  EXPECT_FALSE(match(adapter_of(), model, tied)->untied);
  PeftAdapter adapter = adapter_of();
  adapter.catalog.tensors.push_back(stored("lm_head.weight", {30, 8}));
  adapter.saved = {{"lm_head.weight", 2}};
  const auto untied = match(adapter, model, tied);
  ASSERT_TRUE(untied) << untied.error().text();
  EXPECT_EQ(untied->untied->head, "lm_head.weight");
  EXPECT_EQ(match(adapter, model).error().code, Code::kUnmatchedSource);
  adapter.catalog.tensors[2] = stored("lm_head.weight", {31, 8});
  EXPECT_THAT(match(adapter, model, tied).error().message,
              HasSubstr("lm_head.weight (31, 8) does not fit the base model's lm_head.weight"));
}

}  // namespace
}  // namespace shardwright::adapter_updates

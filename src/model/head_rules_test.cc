// SPDX-License-Identifier: Apache-2.0
#include "model/head_rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "model/apply.h"
#include "model/golden_family.h"
#include "model/sample_model.h"

namespace shardwright {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::IsSupersetOf;
using testing::Not;

std::vector<std::string> names_of(std::span<const MappedTensor> tensors) {
  std::vector<std::string> names;
  for (const MappedTensor& tensor : tensors) names.push_back(tensor.desc.name);
  return names;
}

std::vector<TensorDesc> tensors_of(std::span<const MappedTensor> mapped) {
  std::vector<TensorDesc> descs;
  for (const MappedTensor& tensor : mapped) descs.push_back(tensor.desc);
  return descs;
}

// A llama without the head of its tokens, and these tensors instead.
std::vector<TensorDesc> with_head(const SampleModel& model, std::vector<TensorDesc> head,
                                  bool keeps_own = false) {
  std::vector<TensorDesc> hf = model.llama(false, false);
  if (!keeps_own) {
    std::erase_if(hf, [](const TensorDesc& desc) { return desc.name == "lm_head.weight"; });
  }
  std::ranges::move(head, std::back_inserter(hf));
  return hf;
}

TensorDesc of(std::string name, Dims shape) { return {std::move(name), DType::kBF16, shape}; }

HfConfig config_of(const char* architecture) {
  HfConfig config;
  config.architectures = {architecture};
  return config;
}

TEST(HeadRules, OneLinearIsTheOutputLayer) {
  const SampleModel model;
  const std::int64_t hidden = model.sizes().at("hidden");
  for (const char* module : {"score", "classifier", "v_head", "value_head", "reward_head"}) {
    const std::string name(module);
    const auto there =
        map_from_hf(shipped("llama"), model.sizes(),
                    with_head(model, {of(name + ".weight", {3, hidden}), of(name + ".bias", {3})}));
    ASSERT_TRUE(there) << there.error().message;
    EXPECT_THAT(names_of(there->megatron),
                IsSupersetOf({"output_layer.weight", "output_layer.bias"}));
    const auto canonical = tensors_of(there->megatron);
    FromMegatronOptions options;
    options.head = name;
    const auto back =
        map_from_megatron(shipped("llama"), model.sizes(), canonical, nullptr, options);
    ASSERT_TRUE(back) << back.error().message;
    EXPECT_THAT(names_of(back->hf), IsSupersetOf({name + ".weight", name + ".bias"}));
    EXPECT_THAT(names_of(back->hf), Not(Contains("lm_head.weight")));
    // Nothing tells its name: that of transformers' classes.
    const auto unnamed = map_from_megatron(shipped("llama"), model.sizes(), canonical);
    ASSERT_TRUE(unnamed) << unnamed.error().message;
    EXPECT_THAT(names_of(unnamed->hf), Contains("score.weight"));
    // What it was imported from does, before all else.
    const std::vector<TensorDesc> hf = tensors_of(there->hf);
    const HfWanted wanted{hf};
    const auto known = map_from_megatron(shipped("llama"), model.sizes(), canonical, &wanted);
    ASSERT_TRUE(known) << known.error().message;
    EXPECT_THAT(names_of(known->hf), Contains(name + ".weight"));
  }
}

TEST(HeadRules, WhatStandsBesideTheLanguageModelsKeepsItsNames) {
  const SampleModel model;
  const std::int64_t hidden = model.sizes().at("hidden");
  const std::vector<TensorDesc> hf = with_head(
      model, {of("v_head.summary.weight", {1, hidden}), of("v_head.summary.bias", {1})}, true);
  const auto there = map_from_hf(shipped("llama"), model.sizes(), hf);
  ASSERT_TRUE(there) << there.error().message;
  EXPECT_THAT(
      names_of(there->megatron),
      IsSupersetOf({"output_layer.weight", "v_head.summary.weight", "v_head.summary.bias"}));
  const auto back = map_from_megatron(shipped("llama"), model.sizes(), tensors_of(there->megatron));
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_THAT(names_of(back->hf), IsSupersetOf({"lm_head.weight", "v_head.summary.weight"}));
}

TEST(HeadRules, AnOutputLayerIsNotReplacedWhereItIsThere) {
  const SampleModel model;
  const std::int64_t hidden = model.sizes().at("hidden");
  const auto there = map_from_hf(shipped("llama"), model.sizes(), model.llama(false, false));
  ASSERT_TRUE(there) << there.error().message;
  std::vector<TensorDesc> canonical = tensors_of(there->megatron);
  canonical.push_back(of("score.0.weight", {4, hidden}));
  const auto back = map_from_megatron(shipped("llama"), model.sizes(), canonical);
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_THAT(names_of(back->hf), IsSupersetOf({"lm_head.weight", "score.0.weight"}));
}

TEST(HeadRules, SeveralLayersKeepTheirNames) {
  const SampleModel model;
  const std::int64_t hidden = model.sizes().at("hidden");
  const auto there = map_from_hf(shipped("llama"), model.sizes(),
                                 with_head(model, {of("score.0.weight", {hidden, hidden}),
                                                   of("score.2.weight", {2, hidden})}));
  ASSERT_TRUE(there) << there.error().message;
  EXPECT_THAT(names_of(there->megatron), IsSupersetOf({"score.0.weight", "score.2.weight"}));
  EXPECT_THAT(names_of(there->megatron), Not(Contains("output_layer.weight")));
  const auto back = map_from_megatron(shipped("llama"), model.sizes(), tensors_of(there->megatron));
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_THAT(names_of(back->hf), Not(Contains("lm_head.weight")));
}

TEST(HeadRules, TwoHeadsInOnePlaceAreRefused) {
  const SampleModel model;
  const std::int64_t hidden = model.sizes().at("hidden");
  const auto there = map_from_hf(shipped("llama"), model.sizes(),
                                 with_head(model, {of("score.weight", {1, hidden})}, true));
  ASSERT_FALSE(there);
  EXPECT_EQ(there.error().code, Code::kUnmatchedSource);
  EXPECT_THAT(there.error().message, HasSubstr("found score.weight beside lm_head.weight"));
  const auto whole = map_from_hf(shipped("llama"), model.sizes(), model.llama(false, false));
  ASSERT_TRUE(whole);
  std::vector<TensorDesc> canonical = tensors_of(whole->megatron);
  canonical.push_back(of("rm_head.weight", {1, hidden}));
  const auto back = map_from_megatron(shipped("llama"), model.sizes(), canonical);
  ASSERT_FALSE(back);
  EXPECT_THAT(back.error().message, HasSubstr("rm_head.weight beside output_layer.weight"));
}

TEST(HeadRules, TheWidthIsTheModels) {
  const SampleModel model;
  const std::int64_t hidden = model.sizes().at("hidden");
  const auto there = map_from_hf(shipped("llama"), model.sizes(),
                                 with_head(model, {of("score.weight", {1, hidden + 1})}));
  ASSERT_FALSE(there);
  EXPECT_EQ(there.error().code, Code::kShapeMismatch);
  EXPECT_THAT(there.error().message, HasSubstr("score.weight"));
}

TEST(HeadRules, ABiasHasTheRowsOfItsWeight) {
  const SampleModel model;
  const std::int64_t hidden = model.sizes().at("hidden");
  const auto there =
      map_from_hf(shipped("llama"), model.sizes(),
                  with_head(model, {of("score.weight", {3, hidden}), of("score.bias", {2})}));
  ASSERT_FALSE(there);
  EXPECT_EQ(there.error().code, Code::kShapeMismatch);
  EXPECT_THAT(there.error().message, HasSubstr("score.bias"));
  auto canonical = tensors_of(map_from_hf(shipped("llama"), model.sizes(),
                                          with_head(model, {of("score.weight", {3, hidden})}))
                                  ->megatron);
  canonical.push_back(of("output_layer.bias", {2}));
  const auto back = map_from_megatron(shipped("llama"), model.sizes(), canonical);
  ASSERT_FALSE(back);
  EXPECT_THAT(back.error().message, HasSubstr("output_layer.bias"));
}

TEST(HeadRules, AnOutputLayerOfAnotherVocabularyIsNone) {
  const SampleModel model;
  auto canonical =
      tensors_of(map_from_hf(shipped("llama"), model.sizes(), model.llama(false, false))->megatron);
  for (TensorDesc& tensor : canonical) {
    if (tensor.name == "output_layer.weight") tensor.shape[0] = tensor.shape[0] / 2 + 1;
  }
  const auto back = map_from_megatron(shipped("llama"), model.sizes(), canonical);
  ASSERT_FALSE(back);
  EXPECT_THAT(back.error().message, HasSubstr("output_layer.weight"));
}

TEST(HeadRules, ClassesTellTheModule) {
  EXPECT_EQ(head_module(config_of("LlamaForSequenceClassification")), "score");
  EXPECT_EQ(head_module(config_of("Qwen3ForTokenClassification")), "score");
  EXPECT_EQ(head_module(config_of("GPT2ForTokenClassification")), "classifier");
  EXPECT_EQ(head_module(config_of("GPT2ForSequenceClassification")), "score");
  EXPECT_EQ(head_module(config_of("InternLM2ForRewardModel")), "v_head");
  EXPECT_THAT(head_module(config_of("LlamaForCausalLM")), IsEmpty());
  EXPECT_EQ(headless_stem("Qwen2ForProcessRewardModel"), "Qwen2");
}

TEST(HeadRules, FamiliesAreFoundByTheClassOfAnotherHead) {
  const std::vector<Mapping> mappings = {shipped("llama"), shipped("qwen3_moe")};
  HfConfig config = config_of("Qwen3MoeForSequenceClassification");
  config.model_type = "qwen3_moe";
  const auto found = find_family(mappings, config);
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ((*found)->family, "qwen3_moe");
  EXPECT_FALSE(find_family(mappings, config_of("BertForSequenceClassification")));
}

TEST(HeadRules, TheModelTypeTellsFamiliesOfOneWordApart) {
  const std::vector<Mapping> mappings = {shipped("qwen3_5"), shipped("qwen3_5_vl")};
  for (const auto& [architecture, model_type, family] :
       {std::tuple("Qwen3_5ForTokenClassification", "qwen3_5", "qwen3_5_vl"),
        std::tuple("Qwen3_5ForSequenceClassification", "qwen3_5", "qwen3_5_vl"),
        std::tuple("Qwen3_5TextForSequenceClassification", "qwen3_5_text", "qwen3_5")}) {
    HfConfig config = config_of(architecture);
    config.model_type = model_type;
    const auto found = find_family(mappings, config);
    ASSERT_TRUE(found) << architecture << found.error().message;
    EXPECT_EQ((*found)->family, family) << architecture;
  }
  HfConfig other = config_of("Qwen3_5ForTokenClassification");
  other.model_type = "qwen9";
  EXPECT_FALSE(find_family(mappings, other));
}

TEST(HeadRules, RowsAreTheLabelsThatAreTold) {
  HfConfig config = config_of("LlamaForSequenceClassification");
  const std::vector<TensorDesc> hf = {of("score.weight", {3, 6})};
  EXPECT_TRUE(check_labels(config, hf));  // nothing is told
  config.values["num_labels"] = std::int64_t{3};
  EXPECT_TRUE(check_labels(config, hf));
  config.values["id2label.0"] = std::string("bad");
  config.values["id2label.1"] = std::string("good");
  const Status status = check_labels(config, hf);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Code::kShapeMismatch);
  EXPECT_THAT(status.error().message, HasSubstr("found 3 rows, expected 2"));
}

}  // namespace
}  // namespace shardwright

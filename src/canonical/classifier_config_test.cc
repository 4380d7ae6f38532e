// SPDX-License-Identifier: Apache-2.0
#include "canonical/classifier_config.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace shardwright::classifier_config_test {
namespace {

using Json = nlohmann::ordered_json;

Json made(const std::string& config, std::string_view task, std::int64_t labels) {
  return Json::parse(classifier_config(config, task, labels).value());
}

TEST(ClassifierConfig, NamesTheClassWithTheHead) {
  const auto name = [](const std::string& config, std::string_view task) {
    return made(config, task, 2).at("architectures").at(0).get<std::string>();
  };
  EXPECT_EQ(name(R"({"architectures": ["LlamaForCausalLM"]})", "SEQ_CLS"),
            "LlamaForSequenceClassification");
  EXPECT_EQ(name(R"({"architectures": ["GPT2LMHeadModel"]})", "TOKEN_CLS"),
            "GPT2ForTokenClassification");
  EXPECT_EQ(
      name(R"({"architectures": ["Gemma3ForCausalLM"], "model_type": "gemma3_text"})", "SEQ_CLS"),
      "Gemma3TextForSequenceClassification");
  for (const char* const none : {R"({"architectures": ["LlavaForConditionalGeneration"]})", "{}",
                                 R"({"architectures": []})", R"({"architectures": [1]})", "[]"}) {
    EXPECT_EQ(classifier_config(none, "SEQ_CLS", 2).error().code, Code::kUnsupportedFormat) << none;
  }
  EXPECT_EQ(classifier_config("{", "SEQ_CLS", 2).error().code, Code::kJsonCorrupt);
}

TEST(ClassifierConfig, NamesLabelsWhereTheirNumberIsAnother) {
  const std::string base = R"({"architectures": ["LlamaForCausalLM"], "vocab_size": 30})";
  EXPECT_FALSE(made(base, "SEQ_CLS", 2).contains("id2label")) << "transformers' own number";
  const Json one = made(base, "SEQ_CLS", 1);
  EXPECT_EQ(one.at("id2label"), Json({{"0", "LABEL_0"}}));
  EXPECT_EQ(one.at("label2id"), Json({{"LABEL_0", 0}}));
  EXPECT_EQ(one.at("vocab_size"), 30);
  EXPECT_EQ(made(R"({"architectures": ["LlamaForCausalLM"], "num_labels": 3,
                     "id2label": {"0": "good"}})",
                 "SEQ_CLS", 3)
                .at("id2label")
                .size(),
            3U)
      << "the names count";
  const std::string named = R"({"architectures": ["LlamaForCausalLM"],
                                "id2label": {"0": "good", "1": "bad", "2": "both"}})";
  EXPECT_EQ(made(named, "SEQ_CLS", 3).at("id2label").at("1"), "bad");
  const Json two = made(named, "SEQ_CLS", 2);
  EXPECT_FALSE(two.contains("id2label") || two.contains("label2id"));
}

TEST(ClassifierConfig, StaysWhereTheModelHasTheHead) {
  const std::string config = R"({"architectures":["LlamaForTokenClassification"]})";
  EXPECT_EQ(classifier_config(config, "TOKEN_CLS", 2).value(), config);
  EXPECT_EQ(made(config, "TOKEN_CLS", 4).at("id2label").size(), 4U);
  EXPECT_TRUE(is_classifier_task("SEQ_CLS") && is_classifier_task("TOKEN_CLS"));
  EXPECT_FALSE(is_classifier_task("CAUSAL_LM") || is_classifier_task(""));
}

}  // namespace
}  // namespace shardwright::classifier_config_test

// SPDX-License-Identifier: Apache-2.0
#include "format/peft/lora_config.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace shardwright::lora_config {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string with(const std::string& more) {
  return R"({"peft_type": "LORA", "r": 4, "lora_alpha": 8)" + more + "}";
}

// As save_pretrained() of PEFT 0.21 writes it.
TEST(LoraConfig, WhatPeftWrites) {
  const auto config = read_lora_config(R"({
    "alora_invocation_tokens": null, "alpha_pattern": {}, "arrow_config": null,
    "auto_mapping": null, "base_model_name_or_path": "org/model", "bias": "none",
    "corda_config": null, "ensure_weight_tying": false, "eva_config": null,
    "exclude_modules": null, "fan_in_fan_out": false, "inference_mode": true,
    "init_lora_weights": true, "kasa_config": null, "layer_replication": null,
    "layers_pattern": null, "layers_to_transform": null, "loftq_config": {}, "lora_alpha": 8,
    "lora_bias": false, "lora_dropout": 0.1, "lora_ga_config": null, "megatron_config": null,
    "megatron_core": "megatron.core", "modules_to_save": ["score"], "monteclora_config": null,
    "peft_type": "LORA", "peft_version": "0.21.2", "qalora_group_size": 16, "r": 4,
    "rank_pattern": {}, "revision": null, "target_modules": ["q_proj"],
    "target_parameters": null, "task_type": "CAUSAL_LM", "trainable_token_indices": null,
    "use_bdlora": null, "use_dora": false, "use_qalora": false, "use_rslora": false,
    "velora_config": null})");
  ASSERT_TRUE(config) << config.error().text();
  EXPECT_EQ(config->rank, 4);
  EXPECT_EQ(config->scale_of("model.layers.0.self_attn.q_proj"), 2.0F);
  EXPECT_THAT(config->modules_to_save, ElementsAre("score"));
  EXPECT_EQ(config->base_model, "org/model");
  EXPECT_FALSE(config->uses_dora || config->is_fan_in_fan_out || config->saves_biases);
}

// Mergers have written it in place of the run's own.
TEST(LoraConfig, AnAdapterThatChangesNothingIsRefused) {
  const auto none = read_lora_config(R"({"peft_type": "LORA", "r": 8, "lora_alpha": 0})");
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, Code::kUnsupportedFormat);
  EXPECT_THAT(none.error().message, testing::HasSubstr("lora_alpha is 0"));
  EXPECT_TRUE(read_lora_config(R"({"peft_type": "LORA", "r": 8, "lora_alpha": -1})"));
  for (const char* more : {R"("alpha_pattern": {"q": 4})", R"("modules_to_save": ["lm_head"])"}) {
    EXPECT_TRUE(
        read_lora_config(fmt::format(R"({{"peft_type": "LORA", "lora_alpha": 0, {}}})", more)))
        << more;
  }
}

TEST(LoraConfig, KnowsWhoWroteItBefore0_19) {
  for (const char* version : {"0.17.0", "0.18.2.dev0", "0.9"}) {
    EXPECT_TRUE(
        read_lora_config(with(fmt::format(R"(, "peft_version": "{}")", version)))->is_before_0_19)
        << version;
  }
  for (const char* version : {"0.19.0", "0.21.2", "1.2", "0.", "", "x", "0.x"}) {
    EXPECT_FALSE(
        read_lora_config(with(fmt::format(R"(, "peft_version": "{}")", version)))->is_before_0_19)
        << version;
  }
  EXPECT_FALSE(read_lora_config(with(""))->is_before_0_19);
}

TEST(LoraConfig, ScalesByTheRankOrItsRoot) {
  EXPECT_EQ(read_lora_config(with(""))->scale_of("q"), 2.0F);
  EXPECT_EQ(read_lora_config(with(R"(, "use_rslora": true)"))->scale_of("q"), 4.0F);
}

// The first pattern that is the end of the name counts, at dots only; `^` is a whole name.
TEST(LoraConfig, PatternsAreEndsOfNames) {
  const auto config = read_lora_config(with(
      R"(, "rank_pattern": {"layers.1.q_proj": 2, "q_proj": 16, "^model.v_proj": 1},
         "alpha_pattern": {"^model.layers.0.q_proj": 1, "k_proj": 3})"));
  ASSERT_TRUE(config) << config.error().text();
  EXPECT_EQ(config->rank_of("model.layers.1.q_proj"), 2);
  EXPECT_EQ(config->rank_of("model.layers.11.q_proj"), 16);
  EXPECT_EQ(config->rank_of("model.layers.1.seq_proj"), 4);
  EXPECT_EQ(config->rank_of("model.v_proj"), 1);
  EXPECT_EQ(config->rank_of("my.model.v_proj"), 4);
  EXPECT_EQ(config->scale_of("model.layers.0.q_proj"), 1.0F / 16);
  EXPECT_EQ(config->scale_of("model.layers.1.q_proj"), 4.0F);
  EXPECT_EQ(config->scale_of("k_proj"), 0.75F);
}

TEST(LoraConfig, ModulesAreSavedWithWhatIsInThem) {
  const auto config = read_lora_config(with(R"(, "modules_to_save": ["lm_head", "mlp.gate"])"));
  EXPECT_TRUE(config->saves("lm_head"));
  EXPECT_TRUE(config->saves("model.lm_head"));
  EXPECT_TRUE(config->saves("model.layers.0.mlp.gate.inner"));
  EXPECT_FALSE(config->saves("model.layers.0.gate"));
  EXPECT_TRUE(config->saves("my_lm_head"));
  EXPECT_FALSE(config->saves("lm_head_2"));
}

TEST(LoraConfig, OtherMethodsAreNamed) {
  for (const char* type : {"IA3", "ADALORA", "VERA", "LOHA", "OFT", "PROMPT_TUNING"}) {
    const auto config = read_lora_config(std::string(R"({"peft_type": ")") + type + "\"}");
    ASSERT_FALSE(config);
    EXPECT_EQ(config.error().code, Code::kUnsupportedFormat);
    EXPECT_THAT(config.error().message, HasSubstr(type));
  }
}

TEST(LoraConfig, WhatChangesTheMeaningIsRefusedByName) {
  const std::pair<const char*, const char*> cases[] = {
      {R"(, "alpha_pattern": {"a|b": 1}, "layer_replication": [[0, 4]])", "layer_replication"},
      {R"(, "layer_replication": [[0, 4], [2, 5]])", "layer_replication"},
      {R"(, "use_qalora": true)", "use_qalora"},
      {R"(, "alora_invocation_tokens": [1])", "alora_invocation_tokens"},
      {R"(, "megatron_config": {"a": 1})", "megatron_config"},
      {R"(, "init_lora_weights": "pissa_niter_4")", "pissa_niter_4"},
      {R"(, "init_lora_weights": "loftq")", "loftq"},
      {R"(, "rank_pattern": {"layers\\.[01]\\.q_proj": 2})", "regular expression"},
      {R"(, "brand_new": {"a": 1})", "key brand_new is not known"},
      {R"(, "brand_new": 0)", "key brand_new is not known"},
  };
  for (const auto& [more, name] : cases) {
    const auto config = read_lora_config(with(more));
    ASSERT_FALSE(config) << more;
    EXPECT_EQ(config.error().code, Code::kUnsupportedFormat) << more;
    EXPECT_THAT(config.error().message, HasSubstr(name));
  }
  EXPECT_TRUE(read_lora_config(with(R"(, "brand_new": null, "newer": false, "newest": {})")));
}

TEST(LoraConfig, WhatNothingCanBeIsCorrupt) {
  const std::pair<const char*, const char*> cases[] = {
      {"[]", "expected an object"},
      {"{", "adapter_config.json"},
      {R"({"r": 4})", "peft_type is missing"},
      {R"({"peft_type": "LORA", "r": 0})", "r: found 0"},
      {R"({"peft_type": "LORA", "r": -3})", "r: found -3"},
      {R"({"peft_type": "LORA", "r": 100000000000})", "from 1 to 65536"},
      {R"({"peft_type": "LORA", "r": 2.5})", "r: found 2.5"},
      {R"({"peft_type": "LORA", "r": "8"})", "r: found \"8\""},
      {R"({"peft_type": "LORA", "lora_alpha": "x"})", "lora_alpha: found \"x\""},
      {R"({"peft_type": "LORA", "lora_alpha": 1e300})", "lora_alpha: found 1e+300"},
      {R"({"peft_type": "LORA", "use_dora": 1})", "use_dora: found 1"},
      {R"({"peft_type": "LORA", "modules_to_save": "all"})", "modules_to_save"},
      {R"({"peft_type": "LORA", "modules_to_save": [1]})", "modules_to_save"},
      {R"({"peft_type": "LORA", "bias": true})", "bias: found true"},
      {R"({"peft_type": "LORA", "rank_pattern": {"q": 0}})", "rank_pattern: q: found 0"},
      {R"({"peft_type": "LORA", "alpha_pattern": [1]})", "alpha_pattern"},
  };
  for (const auto& [json, message] : cases) {
    const auto config = read_lora_config(json);
    ASSERT_FALSE(config) << json;
    EXPECT_EQ(config.error().code, Code::kJsonCorrupt) << json;
    EXPECT_THAT(config.error().message, HasSubstr(message));
  }
}

}  // namespace
}  // namespace shardwright::lora_config

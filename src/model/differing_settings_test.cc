// SPDX-License-Identifier: Apache-2.0
#include "model/differing_settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

#include "model/golden_family.h"

namespace shardwright {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class DifferingSettings : public testing::Test {
 protected:
  DifferingSettings() {
    auto made = args_from_hf_config(mapping_, config_);
    EXPECT_TRUE(made) << made.error().text();
    run_ = Arguments(made->values.begin(), made->values.end());
  }

  std::vector<DifferingSetting> differing() const {
    return differing_settings(mapping_, config_, run_).value();
  }

  std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const DifferingSetting& each : differing()) {
      names.push_back(each.argument);
    }
    return names;
  }

  HfConfig config_ = *read_hf_config(R"({
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 64,
    "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "vocab_size": 128, "rms_norm_eps": 1e-05, "rope_theta": 10000.0,
    "max_position_embeddings": 512, "hidden_act": "silu", "tie_word_embeddings": false})");
  const Mapping& mapping_ = **find_family(shipped_mappings(), "llama");
  Arguments run_;
};

TEST_F(DifferingSettings, AreNoneOfArgumentsThatWereMadeOfTheConfig) {
  EXPECT_THAT(names(), IsEmpty());
}

TEST_F(DifferingSettings, AreWhatTheRunComputesOtherwise) {
  run_["rotary_base"] = std::int64_t{500000};
  run_["norm_epsilon"] = 1e-3;
  run_["layernorm_epsilon"] = 1e-3;
  const std::vector<DifferingSetting> found = differing();
  EXPECT_THAT(text_of(found), testing::HasSubstr("rotary_base = 500000 (config.json: 10000"));
  EXPECT_THAT(names(), testing::Contains("layernorm_epsilon"));
  for (const DifferingSetting& each : found) EXPECT_FALSE(each.orders_rows) << each.argument;
}

TEST_F(DifferingSettings, SayWhichHeadsRowsAreOf) {
  run_["num_attention_heads"] = std::int64_t{8};
  run_["kv_channels"] = std::int64_t{16};
  bool has_heads = false;
  for (const DifferingSetting& each : differing()) {
    if (each.argument == "num_attention_heads") has_heads = each.orders_rows;
  }
  EXPECT_TRUE(has_heads);
}

TEST_F(DifferingSettings, AreNoneOfHowItIsTrainedNorOfWhatItDoesNotSay) {
  run_["seq_length"] = run_["max_position_embeddings"] = std::int64_t{65536};
  run_["hidden_dropout"] = 0.1;
  run_.erase("rotary_base");
  run_["layernorm_epsilon"] = {};
  EXPECT_THAT(names(), IsEmpty());
}

TEST_F(DifferingSettings, AreNotToldOfWhatNoConfigOfTheFamilySays) {
  run_["final_logit_softcapping"] = 30.0;
  const auto found = differing_settings(mapping_, config_, run_);
  ASSERT_FALSE(found);
  EXPECT_THAT(found.error().message, testing::HasSubstr("final_logit_softcapping = 30"));
}

TEST_F(DifferingSettings, NameARopeScalingThatOnlyTheRunHas) {
  run_["use_rope_scaling"] = true;
  run_["rope_scaling_factor"] = 8.0;
  EXPECT_THAT(names(), testing::Contains("use_rope_scaling"));
}

// LFM2's config.json gives a width that the model rounds; LLaVA's own says no number of the tower's
// layers.
TEST(DifferingSizes, AreNoneWhereTheTensorsTell) {
  const auto names_of = [](const char* family, const char* json, const Arguments& told) {
    const Mapping& mapping = shipped(family);
    const HfConfig config = read_hf_config(json).value();
    const ArgsFromConfig made = args_from_hf_config(mapping, config).value();
    Arguments run(made.values.begin(), made.values.end());
    for (const auto& [name, value] : told) run.insert_or_assign(name, value);
    std::vector<std::string> names;
    const auto found = differing_settings(mapping, config, run).value();
    for (const DifferingSetting& each : found) {
      names.push_back(each.argument);
    }
    const ModelSettings ours = settings_of_config(mapping, config).value();
    const ModelSettings theirs = settings_of_run(mapping, run).value();
    for (const DifferingSetting& each : differing_models(ours, theirs)) {
      names.push_back(each.argument);
    }
    return names;
  };
  constexpr const char* kLfm2 = R"({
    "architectures": ["Lfm2ForCausalLM"], "model_type": "lfm2", "hidden_size": 64,
    "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 128,
    "layer_types": ["conv", "full_attention"]})";
  EXPECT_THAT(names_of("lfm2", kLfm2, {{"ffn_hidden_size", std::int64_t{64}}}), IsEmpty());
  EXPECT_THAT(names_of("lfm2", kLfm2, {{"conv_L_cache", std::int64_t{5}}}),
              testing::Contains("conv_L_cache"));
  const std::string llava = R"({
    "architectures": ["LlavaLlamaForCausalLM"], "model_type": "llava_llama", "hidden_size": 64,
    "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 128,
    "mm_hidden_size": 32, "mm_vision_tower": "openai/clip-vit-large-patch14-336",
    "mm_projector_type": "mlp2x_gelu"})";
  const Arguments three = {{"vision_num_layers", std::int64_t{3}}};
  EXPECT_THAT(names_of("llava_llama", llava.c_str(), three), IsEmpty());
  const std::string saying =
      llava.substr(0, llava.size() - 1) + R"(, "vision_config": {"num_hidden_layers": 2}})";
  EXPECT_THAT(names_of("llava_llama", saying.c_str(), three),
              testing::Contains("vision_num_layers"));
}

}  // namespace
}  // namespace shardwright

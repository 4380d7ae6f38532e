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

}  // namespace
}  // namespace shardwright

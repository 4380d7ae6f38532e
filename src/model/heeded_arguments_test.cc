// SPDX-License-Identifier: Apache-2.0
#include "model/heeded_arguments.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "model/config.h"
#include "model/differing_settings.h"
#include "model/golden_family.h"

namespace shardwright {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

Arguments yarn_run() {
  return {{"num_layers", std::int64_t{2}},
          {"hidden_size", std::int64_t{64}},
          {"ffn_hidden_size", std::int64_t{96}},
          {"num_attention_heads", std::int64_t{4}},
          {"padded_vocab_size", std::int64_t{128}},
          {"position_embedding_type", std::string("yarn")},
          {"rotary_scaling_factor", 4.0},
          {"yarn_original_max_position_embeddings", std::int64_t{64}}};
}

nlohmann::json scaling_of(const std::string& family, const Arguments& run) {
  const auto made = config_from_args(shipped(family), run);
  if (!made) throw std::runtime_error(made.error().message);
  return nlohmann::json::parse(made->json)["rope_scaling"];
}

TEST(HeededArguments, OfPositionsAreYarnsAlone) {
  const nlohmann::json yarn = scaling_of("qwen3", yarn_run());
  EXPECT_EQ(yarn["rope_type"], "yarn");
  EXPECT_EQ(yarn["factor"], 4.0);
  Arguments run = yarn_run();
  run["use_rope_scaling"] = true;
  run["rope_scaling_factor"] = 8.0;
  EXPECT_EQ(scaling_of("qwen3", run), yarn);
  run = yarn_run();
  run["rotary_seq_len_interpolation_factor"] = std::int64_t{3};
  EXPECT_EQ(scaling_of("qwen3", run), yarn);
  run["position_embedding_type"] = std::string("rope");
  EXPECT_EQ(scaling_of("qwen3", run)["rope_type"], "linear");
  run["rotary_seq_len_interpolation_factor"] = ArgValue{};
  run["use_rope_scaling"] = true;
  EXPECT_EQ(scaling_of("qwen3", run)["rope_type"], "llama3");
}

TEST(HeededArguments, TurnAllChannelsWithYarn) {
  Arguments run = yarn_run();
  run["rotary_percent"] = 0.5;
  const auto made = config_from_args(shipped("glm4"), run);
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ(nlohmann::json::parse(made->json)["partial_rotary_factor"], 1.0);
  EXPECT_THAT(made->notes, Contains(HasSubstr("rotary_percent = 0.5 says nothing beside YaRN")));
  const auto differing = differing_settings(shipped("glm4"), *read_hf_config(made->json), run);
  ASSERT_TRUE(differing) << differing.error().message;
  EXPECT_THAT(*differing, IsEmpty());
  run["position_embedding_type"] = std::string("rope");
  const auto plain = config_from_args(shipped("glm4"), run);
  ASSERT_TRUE(plain) << plain.error().message;
  EXPECT_EQ(nlohmann::json::parse(plain->json)["partial_rotary_factor"], 0.5);
  EXPECT_THAT(plain->notes, Not(Contains(HasSubstr("beside YaRN"))));
}

TEST(HeededArguments, OfLatentAttentionStayAsTheyAre) {
  const Arguments latent = {{"multi_latent_attention", true},
                            {"position_embedding_type", std::string("yarn")},
                            {"use_rope_scaling", true},
                            {"rotary_percent", 0.5}};
  EXPECT_EQ(heeded_arguments(latent), latent);
}

}  // namespace
}  // namespace shardwright

// SPDX-License-Identifier: Apache-2.0
// Settings of a run that are of another kind than config.json has them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "model/config.h"
#include "model/golden_family.h"

namespace shardwright {
namespace {

using testing::HasSubstr;

Result<ConfigFromArgs> config_of_run(const std::string& name, const ArgValue& value) {
  Arguments run = {
      {"num_layers", std::int64_t{2}},          {"hidden_size", std::int64_t{64}},
      {"ffn_hidden_size", std::int64_t{96}},    {"num_attention_heads", std::int64_t{4}},
      {"padded_vocab_size", std::int64_t{128}}, {"position_embedding_type", std::string("rope")}};
  run[name] = value;
  return config_from_args(shipped("llama"), run);
}

TEST(WrongKinds, AreRefused) {
  const std::string digits = "1e-5";
  const std::pair<const char*, ArgValue> wrong[] = {
      {"layernorm_epsilon", digits},
      {"layernorm_epsilon", true},
      {"layernorm_epsilon", std::numeric_limits<double>::quiet_NaN()},
      {"layernorm_epsilon", std::vector<double>{1e-5, 1e-6}},
      {"rotary_base", std::string("10000")},
      {"rotary_base", std::numeric_limits<double>::infinity()},
      {"max_position_embeddings", std::string("8k")},
      {"attention_dropout", std::string("0.1")},
      {"init_method_std", std::string("a")}};
  for (const auto& [name, value] : wrong) {
    const auto made = config_of_run(name, value);
    ASSERT_FALSE(made) << name << " = " << to_string(value);
    EXPECT_EQ(made.error().code, Code::kConfigMissing);
    EXPECT_THAT(made.error().message, HasSubstr(std::string("the run's arguments: ") + name));
  }
}

TEST(WrongKinds, AreNotNumbersOfAnotherSpelling) {
  EXPECT_TRUE(config_of_run("rotary_base", std::int64_t{10000}));
  EXPECT_TRUE(config_of_run("rotary_base", 10000.0));
  EXPECT_TRUE(config_of_run("max_position_embeddings", 8192.0));
  EXPECT_TRUE(config_of_run("layernorm_epsilon", ArgValue{}));
}

// Each loss that balances the experts has a weight of its own.
TEST(WrongKinds, AreNotTheWeightsOfSeveralLosses) {
  Arguments run = {{"num_layers", std::int64_t{2}},
                   {"hidden_size", std::int64_t{64}},
                   {"ffn_hidden_size", std::int64_t{96}},
                   {"num_attention_heads", std::int64_t{4}},
                   {"padded_vocab_size", std::int64_t{128}},
                   {"num_experts", std::int64_t{4}},
                   {"moe_router_topk", std::int64_t{2}},
                   {"position_embedding_type", std::string("rope")},
                   {"moe_aux_loss_coeff", std::vector<double>{0.25, 0.5}}};
  const auto made = config_from_args(shipped("mixtral"), run);
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_THAT(made->json, HasSubstr("\"router_aux_loss_coef\": 0.25"));
  EXPECT_THAT(made->notes, testing::Contains(HasSubstr("config.json gets the first")));
}

TEST(WrongKinds, AreRefusedOfScalingsWithoutDefaults) {
  Arguments run = {
      {"num_layers", std::int64_t{2}},          {"hidden_size", std::int64_t{64}},
      {"ffn_hidden_size", std::int64_t{96}},    {"num_attention_heads", std::int64_t{4}},
      {"padded_vocab_size", std::int64_t{128}}, {"position_embedding_type", std::string("yarn")},
      {"yarn_rotary_scaling_factor", 4.0}};
  EXPECT_TRUE(config_from_args(shipped("llama"), run));
  run["yarn_rotary_scaling_factor"] = std::string("4");
  EXPECT_FALSE(config_from_args(shipped("llama"), run));
}

}  // namespace
}  // namespace shardwright

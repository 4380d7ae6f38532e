// SPDX-License-Identifier: Apache-2.0
#include "model/routing_differences.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "model/config.h"
#include "model/golden_family.h"

namespace shardwright {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;
using testing::Pair;
using RoutedJson = nlohmann::json;

const auto kNormalised = Contains(HasSubstr("is normalised, which makes it 1"));

RoutedJson routed_model(const std::string& family, const RoutedJson& settings) {
  RoutedJson json = {{"hidden_size", 64},
                     {"intermediate_size", 96},
                     {"num_attention_heads", 4},
                     {"num_key_value_heads", 2},
                     {"num_hidden_layers", 2},
                     {"vocab_size", 128},
                     {"head_dim", 16},
                     {"num_local_experts", 4},
                     {"num_experts", 4},
                     {"n_routed_experts", 4},
                     {"num_experts_per_tok", 1},
                     {"moe_intermediate_size", 32},
                     {"n_shared_experts", 1},
                     {"intermediate_size_mlp", 96},
                     {"first_k_dense_replace", 1},
                     {"max_position_embeddings", 64}};
  json.update(settings);
  const Mapping& mapping = shipped(family);
  json["architectures"] = {mapping.architectures[0]};
  json["model_type"] = mapping.model_types[0];
  return json;
}

Result<ArgsFromConfig> routed_arguments(const std::string& family, const RoutedJson& settings) {
  const HfConfig config = read_hf_config(routed_model(family, settings).dump()).value();
  return args_from_hf_config(shipped(family), config);
}

std::vector<std::string> routing_notes(const std::string& family, const RoutedJson& settings) {
  return routed_arguments(family, settings).value().notes;
}

// What is noted of a config.json that is made of a run's arguments.
std::vector<std::string> notes_of_routed_run(const std::string& family, const RoutedJson& settings,
                                             const Arguments& changed) {
  const ArgsFromConfig made = routed_arguments(family, settings).value();
  Arguments args(made.values.begin(), made.values.end());
  for (const auto& [name, value] : changed) args[name] = value;
  return config_from_args(shipped(family), args).value().notes;
}

TEST(RoutingDifferences, TheScoreOfOneExpertThatIsNormalised) {
  for (const char* family : {"glm4_moe", "dots1", "minimax_m2"}) {
    EXPECT_THAT(routing_notes(family, RoutedJson::object()), kNormalised) << family;
    EXPECT_THAT(routing_notes(family, {{"num_experts_per_tok", 2}}), Not(kNormalised)) << family;
  }
  EXPECT_THAT(routing_notes("glm4_moe", {{"norm_topk_prob", false}}), Not(kNormalised));
  EXPECT_THAT(routing_notes("llama4", RoutedJson::object()), Not(kNormalised)) << "never is";
  EXPECT_THAT(routing_notes("mixtral", RoutedJson::object()), Not(kNormalised)) << "softmax";
}

TEST(RoutingDifferences, OfARunAreToldToo) {
  const RoutedJson two = {{"num_experts_per_tok", 2}};
  EXPECT_THAT(notes_of_routed_run("glm4_moe", two, {}), Not(kNormalised));
  const auto told = notes_of_routed_run("glm4_moe", two, {{"moe_router_topk", std::int64_t{1}}});
  EXPECT_THAT(told, kNormalised);
  EXPECT_THAT(told, Contains(HasSubstr("models of family glm4_moe compute otherwise")));
  EXPECT_THAT(notes_of_routed_run("glm4_moe", two,
                                  {{"moe_router_topk", std::int64_t{4}},
                                   {"moe_router_num_groups", std::int64_t{2}},
                                   {"moe_router_group_topk", std::int64_t{1}}}),
              Contains(HasSubstr("by their best 2, where Megatron-Core sums their best 4")));
}

TEST(RoutingDifferences, RunsThatDropTokensOrBalanceOtherwise) {
  const RoutedJson two = {{"num_experts_per_tok", 2}};
  const auto told_of = [&](const std::string& family, const std::string& name, ArgValue value) {
    return notes_of_routed_run(family, two, {{name, std::move(value)}});
  };
  const auto dropping = Contains(HasSubstr("no expert drops tokens"));
  for (const char* name : {"moe_expert_capacity_factor", "moe_expert_rank_capacity_factor"}) {
    EXPECT_THAT(told_of("mixtral", name, 1.5),
                Contains(HasSubstr(std::string(name) + " = 1.5 times their even share")));
    EXPECT_THAT(told_of("mixtral", name, -1.0), Not(dropping)) << "Megatron-LM's None";
    EXPECT_THAT(told_of("mixtral", name, ArgValue{}), Not(dropping));
    EXPECT_THAT(notes_of_routed_run("llama", RoutedJson::object(), {{name, 1.5}}), Not(dropping));
  }
  const std::string balancing = "moe_router_load_balancing_type";
  for (const char* type : {"sinkhorn", "quantile_balancing"}) {
    EXPECT_THAT(told_of("mixtral", balancing, std::string(type)),
                Contains(HasSubstr(balancing + " = '" + type + "' has a way of its own")));
  }
  EXPECT_THAT(told_of("mixtral", balancing, std::string("seq_aux_loss")),
              Not(Contains(HasSubstr("way of its own"))));
}

TEST(RoutingDifferences, OneExpertHasItsSoftmaxFirst) {
  const auto told = Contains(HasSubstr("takes its share of the softmax"));
  for (const char* family : {"mixtral", "qwen3_moe"}) {
    const RoutedJson one = {{"norm_topk_prob", true}};
    const ArgsFromConfig made = routed_arguments(family, one).value();
    EXPECT_THAT(made.values, Contains(Pair("moe_router_pre_softmax", ArgValue{true}))) << family;
    EXPECT_THAT(made.notes, told) << family;
    const ArgsFromConfig two =
        routed_arguments(family, {{"norm_topk_prob", true}, {"num_experts_per_tok", 2}}).value();
    EXPECT_THAT(two.values, Contains(Pair("moe_router_pre_softmax", ArgValue{false}))) << family;
    EXPECT_THAT(two.notes, Not(told)) << family;
  }
  // Which is what such a model does.
  EXPECT_THAT(routing_notes("qwen3_moe", {{"norm_topk_prob", false}}), Not(told));
}

TEST(RoutingDifferences, NoSoftmaxIsPutFirstWhereNothingSaysThatItIsNot) {
  ArgumentList args = {{"num_experts", std::int64_t{4}},
                       {"moe_router_topk", std::int64_t{1}},
                       {"moe_router_score_function", std::string("softmax")}};
  const ArgumentList before = args;
  EXPECT_EQ(put_softmax_first(args), "");
  EXPECT_EQ(args, before);
}

TEST(RoutingDifferences, WeightsOnTheInputOfSeveralExpertsAreRefused) {
  EXPECT_TRUE(routed_arguments("llama4", RoutedJson::object()));
  const auto several = routed_arguments("llama4", {{"num_experts_per_tok", 4}});
  ASSERT_FALSE(several);
  EXPECT_EQ(several.error().code, Code::kConfigMissing);
  EXPECT_THAT(several.error().message, HasSubstr("each token goes to 4 experts"));
}

TEST(RoutingDifferences, SharedExpertsThatAreNoneHaveNoWidth) {
  const auto width_of = [](const std::string& family, const RoutedJson& settings) {
    const ArgsFromConfig made = routed_arguments(family, settings).value();
    for (const auto& [name, value] : made.values) {
      if (name == "moe_shared_expert_intermediate_size") return value;
    }
    return ArgValue{std::string("not there")};
  };
  EXPECT_EQ(width_of("granitemoeshared", {{"shared_intermediate_size", 0}}), ArgValue{});
  EXPECT_EQ(width_of("granitemoeshared", {{"shared_intermediate_size", 32}}),
            ArgValue{std::int64_t{32}});
  EXPECT_EQ(width_of("cohere2_moe", {{"num_shared_experts", 0}}), ArgValue{});
  EXPECT_EQ(width_of("glm4_moe", {{"n_shared_experts", 0}}), ArgValue{});
}

}  // namespace
}  // namespace shardwright

// SPDX-License-Identifier: Apache-2.0
#include "layout/optimizer_groups.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace shardwright {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::vector<TensorDesc> kParameters = {
    {"embedding.word_embeddings.weight", DType::kBF16, {8, 4}},
    {"decoder.layers.0.input_layernorm.weight", DType::kBF16, {4}},
    {"decoder.layers.0.self_attention.linear_qkv.weight", DType::kBF16, {6, 4}},
    {"decoder.layers.0.self_attention.linear_qkv.bias", DType::kBF16, {6}},
    {"decoder.layers.0.self_attention.q_layernorm.weight", DType::kBF16, {2}},
    {"decoder.layers.0.mlp.experts.linear_fc1.weight0", DType::kBF16, {2, 4}},
    {"decoder.layers.0.mlp.experts.linear_fc1.bias0", DType::kBF16, {2}},
    {"output_layer.weight", DType::kBF16, {8, 4}}};

using Groups = std::vector<OptimizerGroup>;

std::string refusal(const Groups& groups) {
  const auto shares = parameters_of_groups(kParameters, groups);
  EXPECT_FALSE(shares);
  if (shares) return {};
  EXPECT_EQ(shares.error().code, Code::kOptimizerUnsupported);
  return shares.error().message;
}

// Megatron chains Muon, whose groups have a momentum and no betas, and Adam for all but matrices.
TEST(OptimizerGroups, OfMuonAreForMatrices) {
  const Groups groups = {{false, true, false, 1, false},
                         {true, true, false, 1, false},
                         {false, true, false, 2, true},
                         {false, false, false, 3, true},
                         {true, false, false, 1, true}};
  EXPECT_THAT(parameters_of_groups(kParameters, groups).value(),
              ElementsAre(ElementsAre(2), ElementsAre(5), ElementsAre(0, 7), ElementsAre(1, 3, 4),
                          ElementsAre(6)));
  const Groups alone = {{false, true, false, 4, false}, {false, false, false, 4, false}};
  EXPECT_THAT(parameters_of_groups(kParameters, alone).value(),
              ElementsAre(ElementsAre(0, 2, 5, 7), ElementsAre(1, 3, 4, 6)))
      << "SGD's are for all";
  const Groups without = {{false, true, false, 0, true}, {false, false, false, 0, false}};
  const auto shares = share_out(kParameters, without, GroupRule());
  ASSERT_FALSE(shares);
  EXPECT_THAT(shares.error().message, HasSubstr("decoder.layers.0.input_layernorm.weight"));
}

// Lion's have betas as Adam's have, which say what they are by a key of their own.
TEST(OptimizerGroups, OfLionAreForMatrices) {
  const Groups groups = {{false, true, false, 2, true, false},
                         {false, true, false, 2, true, true},
                         {false, false, false, 4, true, true}};
  EXPECT_THAT(parameters_of_groups(kParameters, groups).value(),
              ElementsAre(ElementsAre(2, 5), ElementsAre(0, 7), ElementsAre(1, 3, 4, 6)));
  const Groups all_adam = {{false, true, false, 4, true, true},
                           {false, false, false, 4, true, true}};
  EXPECT_THAT(parameters_of_groups(kParameters, all_adam).value(),
              ElementsAre(ElementsAre(0, 2, 5, 7), ElementsAre(1, 3, 4, 6)));
}

// Of a run that gives Megatron no settings of some parameters' own.
TEST(OptimizerGroups, MayBeOneForAll) {
  EXPECT_THAT(parameters_of_groups(kParameters, Groups{{false, true, false, 8}}).value(),
              ElementsAre(ElementsAre(0, 1, 2, 3, 4, 5, 6, 7)));
  const Groups with_experts = {{false, true, false, 6}, {true, true, false, 2}};
  EXPECT_THAT(parameters_of_groups(kParameters, with_experts).value(),
              ElementsAre(ElementsAre(0, 1, 2, 3, 4, 7), ElementsAre(5, 6)));
  EXPECT_THAT(refusal({{false, true, false, 7}}), HasSubstr("frozen"));
  EXPECT_THAT(refusal({{false, true, false, 8}, {false, false, false, 0}}), HasSubstr("expected 4"))
      << "a group without decay says that not all have it";
  EXPECT_FALSE(share_out(kParameters, Groups{{false, true, false, 0}}, GroupRule()))
      << "a group may have been lost";
}

// Versions before 0.16 put the group first whose first parameter comes first.
TEST(OptimizerGroups, AreFoundByWhatTheySayNotByTheirPlace) {
  const Groups decay_first = {{false, true, false, 4}, {false, false, false, 4}};
  EXPECT_THAT(parameters_of_groups(kParameters, decay_first).value(),
              ElementsAre(ElementsAre(0, 2, 5, 7), ElementsAre(1, 3, 4, 6)));
  const Groups decay_last = {{false, false, false, 4}, {false, true, false, 4}};
  EXPECT_THAT(parameters_of_groups(kParameters, decay_last).value(),
              ElementsAre(ElementsAre(1, 3, 4, 6), ElementsAre(0, 2, 5, 7)));
}

TEST(OptimizerGroups, TellExpertsAndRatesApartWhereSomeGroupDoes) {
  const Groups chained = {{false, true, false, 3},
                          {false, false, false, 3},
                          {true, true, false, 1},
                          {true, false, false, 1}};
  EXPECT_THAT(
      parameters_of_groups(kParameters, chained).value(),
      ElementsAre(ElementsAre(0, 2, 7), ElementsAre(1, 3, 4), ElementsAre(5), ElementsAre(6)));
  const Groups decoupled = {
      {false, true, false, 2}, {false, false, false, 4}, {false, true, true, 2}};
  EXPECT_THAT(parameters_of_groups(kParameters, decoupled).value(),
              ElementsAre(ElementsAre(2, 5), ElementsAre(1, 3, 4, 6), ElementsAre(0, 7)));
}

// Hidden matrices have the rate of MuP; embeddings, the output layer and vectors keep theirs.
TEST(OptimizerGroups, OfMupHaveTheMatricesApart) {
  std::vector<TensorDesc> parameters = kParameters;
  parameters.erase(parameters.begin() + 5);  // or there were as many matrices as tables
  const Groups groups = {{false, true, false, 2}, {false, true, true, 1}, {false, false, false, 4}};
  const GroupRule told{.own_rate = OwnRate::kMatrices};
  const auto expected = ElementsAre(ElementsAre(0, 6), ElementsAre(2), ElementsAre(1, 3, 4, 5));
  EXPECT_THAT(share_out(parameters, groups, told).value(), expected);
  EXPECT_THAT(parameters_of_groups(parameters, groups, told).value(), expected);
  const GroupRule unknown{.own_rate = OwnRate::kUnknown};
  EXPECT_THAT(parameters_of_groups(parameters, groups, unknown).value(), expected)
      << "their sizes tell";
  const Groups of_sgd = {{false, true, true, 2}, {false, true, false, 1}, {false, false, true, 4}};
  EXPECT_THAT(share_out(parameters, of_sgd, {.own_rate = OwnRate::kVectors}).value(), expected);
  const auto refused = share_out(parameters, groups, unknown);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("neither --decoupled-lr nor --use-mup"));
}

TEST(OptimizerGroups, MayLeaveEmbeddingsWithoutDecay) {
  const Groups groups = {{false, true, false, 3}, {false, false, false, 5}};
  const auto expected = ElementsAre(ElementsAre(2, 5, 7), ElementsAre(0, 1, 3, 4, 6));
  EXPECT_THAT(parameters_of_groups(kParameters, groups).value(), expected);
  EXPECT_THAT(share_out(kParameters, groups, {.spares_embeddings = true}).value(), expected);
}

TEST(OptimizerGroups, MayLetNormsOfQueriesAndKeysDecay) {
  const Groups groups = {{false, true, false, 5}, {false, false, false, 3}};
  EXPECT_THAT(parameters_of_groups(kParameters, groups).value(),
              ElementsAre(ElementsAre(0, 2, 4, 5, 7), ElementsAre(1, 3, 6)));
}

TEST(OptimizerGroups, MayBeEmpty) {
  const Groups groups = {{false, true, false, 4}, {false, false, false, 4}, {true, true, false, 0}};
  EXPECT_FALSE(parameters_of_groups(kParameters, groups)) << "experts would be missing there";
  const std::vector<TensorDesc> dense(kParameters.begin(), kParameters.begin() + 5);
  const Groups with_empty = {
      {false, true, false, 2}, {false, false, false, 3}, {true, true, false, 0}};
  EXPECT_THAT(parameters_of_groups(dense, with_empty).value(),
              ElementsAre(ElementsAre(0, 2), ElementsAre(1, 3, 4), ElementsAre()));
}

TEST(OptimizerGroups, ThatDoNotFitAreRefused) {
  EXPECT_THAT(refusal({{false, true, false, 3}, {false, false, false, 4}}),
              HasSubstr("found 7 parameters in groups of 3 with weight decay, 4 without weight "
                        "decay, expected 4 with weight decay, 4 without weight decay for the 8"));
  EXPECT_THAT(refusal({{false, true, false, 5}, {false, false, false, 5}}),
              HasSubstr("found 10 parameters"));
  EXPECT_THAT(refusal({{false, true, false, 7}}), HasSubstr("expected groups for all of them"));
  EXPECT_THAT(refusal({{false, true, false, 4}, {false, true, false, 4}}),
              HasSubstr("groups 0 and 1 alike"));
}

TEST(OptimizerGroups, CountBiasesOfAnyShapeAsSmall) {
  EXPECT_FALSE(group_of({"tower.table.bias", DType::kBF16, {2, 2}}, GroupRule()).has_decay);
  EXPECT_TRUE(group_of({"tower.table.weight", DType::kBF16, {2, 2}}, GroupRule()).has_decay);
}

TEST(OptimizerGroups, OfANewOptimizerTakeWhatThereIs) {
  const Groups groups = {{false, true, false, 0}, {false, false, false, 0}, {true, true, false, 0}};
  const auto shares = share_out(std::span(kParameters).first(6), groups, GroupRule());
  EXPECT_THAT(shares.value(), ElementsAre(ElementsAre(0, 2), ElementsAre(1, 3, 4), ElementsAre(5)));
  const auto refused = share_out(kParameters, groups, GroupRule());
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message,
              HasSubstr("tensor decoder.layers.0.mlp.experts.linear_fc1.bias0: no parameter "
                        "group without weight decay of experts exists for it"));
}

// With a learning rate that nothing says what it is for, say.
TEST(OptimizerGroups, OfANewOptimizerMustDiffer) {
  const Groups groups = {
      {false, true, false, 0}, {false, false, false, 0}, {false, true, false, 0}};
  const auto refused = share_out(kParameters, groups, GroupRule());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kOptimizerUnsupported);
  EXPECT_THAT(refused.error().message, HasSubstr("groups 0 and 2 alike"));
}

}  // namespace
}  // namespace shardwright

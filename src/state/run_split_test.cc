// SPDX-License-Identifier: Apache-2.0
#include "state/run_split.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace shardwright {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr const char* kLayout = "pipeline_model_parallel_layout";
constexpr const char* kFirst = "decoder_first_pipeline_num_layers";
constexpr const char* kLast = "decoder_last_pipeline_num_layers";
constexpr const char* kEmbedding = "account_for_embedding_in_pipeline_split";
constexpr const char* kLoss = "account_for_loss_in_pipeline_split";

ArgValue text(std::string value) { return ArgValue{std::move(value)}; }
ArgValue number(std::int64_t value) { return ArgValue{value}; }

// The layers by stage, with virtual stages `stage.virtual`: "0 0 1 1".
std::string split(const Arguments& arguments, std::int64_t layers, std::int64_t pipeline,
                  std::int64_t virtual_pipeline = 1) {
  const ParallelConfig config{.pipeline = pipeline, .virtual_pipeline = virtual_pipeline};
  const auto split = split_of_run(arguments, layers, config);
  if (!split) return split.error().message;
  std::string stages;
  for (std::int64_t layer = 0; layer < layers; ++layer) {
    if (layer > 0) stages += ' ';
    stages += std::to_string(split->stage_of(layer));
    if (virtual_pipeline > 1) stages += '.' + std::to_string(split->virtual_stage_of(layer));
  }
  return stages;
}

TEST(RunSplit, IsEvenWhereNothingIsSaid) {
  EXPECT_EQ(split({}, 4, 2), "0 0 1 1");
  EXPECT_EQ(split({}, 4, 2, 2), "0.0 1.0 0.1 1.1");
  EXPECT_EQ(split({}, 3, 1), "0 0 0");
  EXPECT_EQ(split({{kLast, number(1)}}, 3, 1), "0 0 0") << "there is but one";
  EXPECT_EQ(split({{kLayout, ArgValue{}}, {kFirst, ArgValue{}}, {kLoss, ArgValue{false}}}, 4, 4),
            "0 1 2 3");
  EXPECT_THAT(split({}, 5, 2), HasSubstr("found 5 layers, expected a multiple of 2"));
}

TEST(RunSplit, FollowsALayout) {
  EXPECT_EQ(split({{kLayout, text("Et*3|tL")}}, 4, 2), "0 0 0 1");
  EXPECT_EQ(split({{kLayout, text("Ettt|tmL")}}, 4, 2), "0 0 0 1");
  EXPECT_EQ(split({{kLayout, text("Et|tt|t|L")}}, 4, 2, 2), "0.0 1.0 1.0 0.1");
  EXPECT_EQ(split({{kLayout, text("E,t|(tt|)*2,t|L")}}, 6, 5), "0 1 1 2 2 3");
  EXPECT_EQ(split({{kLayout, text("E|t*2|*2tL")}}, 3, 4), "1 1 3") << "a bar may be repeated";
}

// The last stage where nothing is said, which is then for the model to tell.
TEST(RunSplit, TellsWhereTheLayoutHasThePredictionLayers) {
  const auto chunk = [](ArgValue layout, std::int64_t pipeline, std::int64_t virtual_pipeline = 1) {
    const ParallelConfig config{.pipeline = pipeline, .virtual_pipeline = virtual_pipeline};
    return prediction_chunk_of_run({{kLayout, std::move(layout)}}, config);
  };
  EXPECT_EQ(split({{kLayout, text("Et|ttt|m|L")}}, 4, 4), "0 1 1 1");
  EXPECT_EQ(chunk(text("Et|ttt|m|L"), 4), 2);
  EXPECT_EQ(chunk(text("Et|ttt|m|L"), 2, 2), 2);
  EXPECT_EQ(chunk(text("Et*3|tm*2L"), 2), 1);
  EXPECT_EQ(chunk(text("Et*4|L"), 2), std::nullopt);
  EXPECT_EQ(chunk(text("Et|tttm|L"), 1), std::nullopt) << "there is but one";
  EXPECT_EQ(chunk(ArgValue{}, 2), std::nullopt);
}

TEST(RunSplit, RefusesLayoutsThatAreNone) {
  const auto refused = [](std::string layout, std::int64_t layers = 4) {
    return split({{kLayout, text(std::move(layout))}}, layers, 2);
  };
  EXPECT_THAT(refused("Et|t|tt|L"), HasSubstr("expected 2 stages"));
  EXPECT_THAT(refused("Ett|tL"), HasSubstr("found 4 layers, expected the 3 of all"));
  EXPECT_THAT(refused("tt|EttL"), HasSubstr("E once in the first stage"));
  EXPECT_THAT(refused("EttL|tt"), HasSubstr("L once in the last"));
  EXPECT_THAT(refused("Etttm|tL"), HasSubstr("MTP layers in one stage, behind all layers"));
  EXPECT_THAT(refused("Ettttm|mL"), HasSubstr("MTP layers in one stage, behind all layers"));
  EXPECT_THAT(refused("Ett|(ttL"), HasSubstr("stages of E, t, m and L"));
  EXPECT_THAT(refused("Ett|x*2L"), HasSubstr("stages of E, t, m and L"));
  EXPECT_THAT(refused("Ett|t*L"), HasSubstr("stages of E, t, m and L"));
  EXPECT_THAT(refused("Et*9999999999999999999|L"), HasSubstr("stages of E, t, m and L"));
  EXPECT_THAT(refused("E(t*60000)*60000|L"), HasSubstr("stages of E, t, m and L"));
  EXPECT_THAT(split({{kLayout, number(3)}}, 4, 2), HasSubstr("stages of E, t, m and L"));
}

TEST(RunSplit, FollowsTheBarsOfAPattern) {
  const char* const pattern = "hybrid_layer_pattern";
  EXPECT_EQ(split({{pattern, text("M*G|-")}}, 4, 2), "0 0 0 1");
  EXPECT_EQ(split({{pattern, text("M*|G|-M|-/MM")}}, 6, 2, 2), "0.0 0.0 1.0 0.1 0.1 1.1");
  EXPECT_EQ(split({{pattern, text("M*G-")}}, 4, 2), "0 0 1 1");
  EXPECT_THAT(split({{pattern, text("M*|G|-")}}, 4, 2), HasSubstr("expected 2 stages"));
  EXPECT_THAT(split({{pattern, text("M*|G-")}}, 4, 1), HasSubstr("expected 1 stages"));
  EXPECT_EQ(split({{pattern, text("M*G|-")}}, 4, 1, 2), "0.0 0.0 0.0 0.1");
}

TEST(RunSplit, GivesTheFirstAndTheLastStageTheirOwnNumbers) {
  EXPECT_EQ(split({{kFirst, number(1)}}, 4, 2), "0 1 1 1");
  EXPECT_EQ(split({{kLast, number(1)}}, 5, 3), "0 0 1 1 2");
  EXPECT_EQ(split({{kFirst, number(1)}, {kLast, number(2)}}, 7, 4), "0 1 1 2 2 3 3");
  EXPECT_EQ(split({{kFirst, number(2)}}, 6, 2, 2), "0.0 1.0 1.0 0.1 1.1 1.1");
  EXPECT_THAT(split({{kFirst, number(1)}, {kLast, number(1)}}, 7, 4), HasSubstr("5 layers beside"));
  EXPECT_THAT(split({{kFirst, number(1)}, {kLast, number(1)}}, 4, 2), HasSubstr("2 layers beside"));
  EXPECT_THAT(split({{kFirst, number(1)}}, 4, 2, 2), HasSubstr("a stage of 1 layers"));
  EXPECT_THAT(split({{kFirst, number(-1)}}, 4, 2), AllOf(HasSubstr(kFirst), HasSubstr("0 to 4")));
}

TEST(RunSplit, CountsEmbeddingAndLossWhereTheRunDid) {
  EXPECT_EQ(split({{kEmbedding, ArgValue{true}}}, 5, 2), "0 0 1 1 1");
  EXPECT_EQ(split({{kLoss, ArgValue{true}}}, 5, 2), "0 0 0 1 1");
  EXPECT_EQ(split({{kEmbedding, ArgValue{true}}, {kLoss, ArgValue{true}}}, 6, 2, 2),
            "0.0 1.0 1.0 0.1 0.1 1.1");
  EXPECT_THAT(split({{kEmbedding, ArgValue{true}}}, 4, 2), HasSubstr("found 5 layers"));
}

TEST(RunSplit, BoundsHowManyStagesThereMayBe) {
  EXPECT_THAT(split({}, 4, std::int64_t{1} << 40),
              HasSubstr("4 layers for 1099511627776 pipeline"));
  EXPECT_FALSE(split_of_run({}, std::int64_t{1} << 62, {.pipeline = 2}));
  EXPECT_THAT(split({}, 4, 2, std::int64_t{1} << 62), HasSubstr("virtual ones, expected fewer"));
}

}  // namespace
}  // namespace shardwright

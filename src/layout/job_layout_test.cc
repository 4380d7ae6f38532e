// SPDX-License-Identifier: Apache-2.0
#include "layout/job_layout.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

namespace shardwright {
namespace {

using RankList = std::vector<std::int64_t>;

TensorDesc job_tensor(std::string name, const Dims& shape) {
  return {std::move(name), DType::kBF16, shape};
}

const TensorDesc kJobEmbedding = job_tensor("embedding.word_embeddings.weight", {8, 4});
const TensorDesc kQkv = job_tensor("decoder.layers.self_attention.linear_qkv.weight", {4, 8, 4});
const TensorDesc kJobNorm = job_tensor("decoder.layers.input_layernorm.weight", {4, 4});
const TensorDesc kRouter = job_tensor("decoder.layers.0.mlp.router.weight", {4, 4});
const TensorDesc kExpert =
    job_tensor("decoder.layers.0.mlp.experts.experts.linear_fc2.weight", {4, 8, 8});
const TensorDesc kExpertBias =
    job_tensor("decoder.layers.0.mlp.experts.experts.linear_fc2.bias", {4, 8});
const TensorDesc kOutput = job_tensor("output_layer.weight", {8, 4});

RankList listed(const RankRuns& runs) {
  RankList ranks;
  for (std::int64_t i = 0; i < runs.size(); ++i) ranks.push_back(runs[i]);
  for (std::int64_t rank = -1; rank < 100; ++rank) {
    EXPECT_EQ(runs.contains(rank), std::ranges::find(ranks, rank) != ranks.end()) << rank;
  }
  return ranks;
}

// Who holds the last piece.
RankList holders(const JobLayout& layout, const TensorDesc& tensor) {
  const JobShards shards = layout.place(tensor).value();
  return listed(layout.holders(shards, shards.pieces.size() - 1));
}

RankList holders(const JobLayout& layout, const TensorDesc& tensor, std::size_t piece) {
  return listed(layout.holders(layout.place(tensor).value(), piece));
}

JobLayout make(const std::vector<TensorDesc>& tensors, const ParallelConfig& config,
               std::int64_t data) {
  return JobLayout::make(tensors, config, data).value();
}

TEST(JobLayout, NumbersRanksAsMegatronDoes) {
  const JobLayout layout =
      make({kQkv, kJobNorm}, {.tensor = 2, .pipeline = 2, .expert_tensor = 2}, 3);
  EXPECT_EQ(layout.world_size(), 12);
  EXPECT_EQ(layout.groups(), 4);
  EXPECT_EQ(layout.group_size(), 3);
  EXPECT_EQ(holders(layout, kQkv, 0), (RankList{0, 2, 4})) << "layer 0, tensor rank 0";
  EXPECT_EQ(holders(layout, kQkv, 1), (RankList{1, 3, 5}));
  EXPECT_EQ(holders(layout, kQkv, 5), (RankList{7, 9, 11})) << "layer 2 is on the second stage";
  EXPECT_EQ(holders(layout, kJobNorm, 1), (RankList{0, 1, 2, 3, 4, 5}));
  EXPECT_FALSE(layout.place(kQkv)->is_replicated);
  EXPECT_TRUE(layout.place(kJobNorm)->is_replicated);
}

TEST(JobLayout, GroupsAreTheReplicasOfOneTensorAndPipelineRank) {
  const JobLayout layout = make({kQkv}, {.tensor = 2, .pipeline = 2, .expert_tensor = 2}, 3);
  std::map<std::int64_t, RankList> groups;
  for (std::int64_t rank = 0; rank < layout.world_size(); ++rank) {
    groups[layout.group_of(rank)].push_back(rank);
    EXPECT_EQ(layout.rank_of(layout.group_of(rank), layout.member_of(rank)), rank);
    EXPECT_EQ(layout.tensor_rank_of(layout.group_of(rank)), rank % 2);
  }
  EXPECT_EQ(groups, (std::map<std::int64_t, RankList>{
                        {0, {0, 2, 4}}, {1, {1, 3, 5}}, {2, {6, 8, 10}}, {3, {7, 9, 11}}}));
}

TEST(JobLayout, SharesOutExpertsOverTheirOwnGrid) {
  const JobLayout same = make({kExpert}, {.tensor = 2, .expert = 2, .expert_tensor = 2}, 2);
  EXPECT_EQ(holders(same, kExpert, 0), (RankList{0})) << "expert 0, its first part";
  EXPECT_EQ(holders(same, kExpert, 1), (RankList{1}));
  EXPECT_EQ(holders(same, kExpert, 6), (RankList{2})) << "expert 3 is on the second expert rank";
  const JobLayout whole = make({kExpert, kRouter}, {.tensor = 2, .expert = 2}, 4);
  EXPECT_EQ(holders(whole, kExpert, 0), (RankList{0, 2, 4, 6})) << "neighbours hold other experts";
  EXPECT_EQ(holders(whole, kExpert, 3), (RankList{1, 3, 5, 7}));
  EXPECT_EQ(holders(whole, kRouter, 0), (RankList{0, 1, 2, 3, 4, 5, 6, 7}));
  EXPECT_TRUE(whole.place(kExpert)->is_expert);
  const JobLayout staged =
      make({job_tensor("decoder.layers.1.mlp.experts.experts.linear_fc2.weight", {4, 8, 8})},
           {.pipeline = 2, .expert = 2}, 4);
  EXPECT_EQ(
      holders(staged,
              job_tensor("decoder.layers.1.mlp.experts.experts.linear_fc2.weight", {4, 8, 8}), 3),
      (RankList{5, 7}));
}

TEST(JobLayout, AllPartsOfAnExpertHoldWhatIsNotCut) {
  const JobLayout layout = make({kExpertBias}, {.tensor = 2, .expert = 2, .expert_tensor = 2}, 4);
  EXPECT_EQ(holders(layout, kExpertBias, 0), (RankList{0, 1, 4, 5}));
  EXPECT_EQ(holders(layout, kExpertBias, 3), (RankList{2, 3, 6, 7}));
}

TEST(JobLayout, AnExpertWithTensorsOfItsOwnIsOnItsRank) {
  std::vector<TensorDesc> tensors;
  for (int expert = 0; expert < 6; ++expert) {
    tensors.push_back(job_tensor(
        "decoder.layers.0.mlp.experts.experts." + std::to_string(expert) + ".linear_fc1.weight",
        {8, 4}));
  }
  const JobLayout layout = make(tensors, {.expert = 3}, 6);
  EXPECT_EQ(holders(layout, tensors[0]), (RankList{0, 3}));
  EXPECT_EQ(holders(layout, tensors[3]), (RankList{1, 4}));
  EXPECT_EQ(holders(layout, tensors[5]), (RankList{2, 5}));
  const auto uneven = make(tensors, {.expert = 4}, 4).place(tensors[0]);
  ASSERT_FALSE(uneven);
  EXPECT_EQ(uneven.error().code, Code::kNotDivisible);
  EXPECT_NE(uneven.error().message.find("6 experts"), std::string::npos);
}

TEST(JobLayout, ATiedEmbeddingIsOnTheLastStageToo) {
  const ParallelConfig config{.tensor = 2, .pipeline = 2, .expert_tensor = 2};
  const TensorDesc moment =
      job_tensor("optimizer.state.exp_avg.embedding.word_embeddings.weight", {8, 4});
  const JobLayout layout = make({kJobEmbedding, kQkv, moment}, config, 2);
  for (const TensorDesc& embedding : {kJobEmbedding, moment}) {
    const JobShards shards = layout.place(embedding).value();
    ASSERT_TRUE(shards.is_tied) << embedding.name;
    EXPECT_EQ(listed(layout.holders(shards, 1)), (RankList{1, 3}));
    EXPECT_EQ(listed(layout.tied_holders(shards, 1)), (RankList{5, 7}));
  }
  EXPECT_FALSE(make({kJobEmbedding, kQkv, kOutput}, config, 2).place(kJobEmbedding)->is_tied);
  EXPECT_FALSE(make({kJobEmbedding, kQkv}, {.tensor = 2, .expert_tensor = 2}, 2)
                   .place(kJobEmbedding)
                   ->is_tied)
      << "with one stage it is the same tensor";
  const TensorDesc predicting = job_tensor("mtp.layers.0.eh_proj.weight", {4, 8});
  EXPECT_TRUE(
      make({kJobEmbedding, kQkv, kOutput, predicting}, config, 2).place(kJobEmbedding)->is_tied)
      << "prediction layers embed tokens on the last stage";
}

TEST(JobLayout, SaysWhatDoesNotFit) {
  const auto experts = JobLayout::make({}, {.tensor = 2, .expert = 4}, 3);
  ASSERT_FALSE(experts);
  EXPECT_EQ(experts.error().code, Code::kNotDivisible);
  EXPECT_NE(experts.error().message.find("6 ranks in a stage"), std::string::npos);
  EXPECT_EQ(JobLayout::make({}, {.tensor = 1024, .pipeline = 4}, 1024).error().code, Code::kLimit);
  EXPECT_EQ(JobLayout::make({}, {.tensor = std::int64_t{1} << 62}, 4).error().code, Code::kLimit);
  EXPECT_EQ(make({kQkv}, {.tensor = 3, .expert_tensor = 3}, 1).place(kQkv).error().code,
            Code::kNotDivisible);
}

TEST(JobLayout, ObjectsAreReadOnTheFirstRankOfTheirStage) {
  const JobLayout layout = make({kQkv}, {.tensor = 2, .pipeline = 2, .expert_tensor = 2}, 3);
  EXPECT_EQ(
      layout.rank_of_object("decoder.layers.self_attention.linear_qkv._extra_state/shard_3_4"), 6);
  EXPECT_EQ(
      layout.rank_of_object("decoder.layers.self_attention.linear_qkv._extra_state/shard_1_4"), 0);
}

TEST(JobLayout, ObjectsOfExpertsAreReadOnTheirFirstRank) {
  const TensorDesc stacked =
      job_tensor("decoder.layers.mlp.experts.experts.linear_fc2.weight", {4, 8, 8, 8});
  const ParallelConfig config{.tensor = 2, .pipeline = 2, .expert = 2, .expert_tensor = 2};
  const JobLayout layout = make({stacked}, config, 4);
  const std::string fc1 = ".mlp.experts.experts.linear_fc1._extra_state/shard_";
  EXPECT_EQ(layout.rank_of_object("decoder.layers" + fc1 + "1.3_4.8"), 0);
  EXPECT_EQ(layout.rank_of_object("decoder.layers" + fc1 + "1.4_4.8"), 2);
  EXPECT_EQ(layout.rank_of_object("decoder.layers" + fc1 + "2.7_4.8"), 10);
  EXPECT_EQ(layout.rank_of_object("decoder.layers.3" + fc1 + "5_8"), 10) << "no axis of layers";
  EXPECT_EQ(layout.rank_of_object("decoder.layers" + fc1 + "1.2_4.3"), 0) << "not 2 x 1.5 experts";
  EXPECT_EQ(layout.rank_of_object("decoder.layers" + fc1), 0);
  std::vector<TensorDesc> singles;
  for (const char* expert : {"0", "1", "2", "3"}) {
    const std::string module = "decoder.layers.0.mlp.experts.experts." + std::string(expert);
    singles.push_back(job_tensor(module + ".linear_fc1.weight", {8, 4}));
  }
  const JobLayout single = make(singles, {.expert = 2}, 2);
  const std::string module = "decoder.layers.0.mlp.experts.experts.";
  EXPECT_EQ(single.rank_of_object(module + "1.linear_fc1._extra_state/shard_0_1"), 0);
  EXPECT_EQ(single.rank_of_object(module + "2.linear_fc1._extra_state/shard_0_1"), 1);
}

TEST(JobLayout, StatesOfRanksAreReadByThoseRanks) {
  const JobLayout layout = make({kQkv}, {.tensor = 2, .pipeline = 2, .expert_tensor = 2}, 3);
  EXPECT_EQ(layout.rank_of_object("rng_state/shard_1.1_2.2"), 7);
  EXPECT_EQ(layout.rank_of_object("rng_state/shard_1.1.2_2.2.3"), 11);
  EXPECT_EQ(layout.rank_of_object("rerun_state_machine_state/shard_9_12"), 9);
  for (const char* other : {"1.1_2.4", "1.1.2_2.2.4", "1.1.0.0_2.2.3.1", "1.2_2.2", "3_8", "1.1_2",
                            "1.x_2.2", "-1.1_2.2", "1.1", "1.1_2.2x"}) {
    EXPECT_EQ(layout.rank_of_object("rng_state/shard_" + std::string(other)), std::nullopt)
        << other << " is of another run";
  }
}

}  // namespace
}  // namespace shardwright

// SPDX-License-Identifier: Apache-2.0
#include "layout/asked_plan.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "layout/saved_job_fixture.h"

namespace shardwright {
namespace {

constexpr ParallelConfig kTwoTensorRanks{.tensor = 2, .expert_tensor = 2};

using AskedBoxes = std::vector<std::vector<AskedBox>>;

// What the ranks of one group of a job hold, as they would ask for it.
AskedBoxes asked_by(const Catalog& catalog, const ParallelConfig& config, std::int64_t data,
                    std::uint32_t group) {
  const JobLayout layout = JobLayout::make(descs_of(catalog), config, data).value();
  std::vector<std::uint32_t> which;
  for (std::uint32_t i = 0; i < catalog.tensors.size(); ++i) which.push_back(i);
  const LoadNeeds needs = needs_of(catalog, which, layout).value();
  AskedBoxes asked(static_cast<std::size_t>(data));
  for (const NeededShard& shard : needs.groups[group].shards) {
    const Box box = needs.tensors[shard.tensor].shards.pieces[shard.piece].box;
    for (const std::uint32_t member : needs.groups[group].holders[shard.holders]) {
      asked[member].push_back({shard.tensor, box});
    }
  }
  return asked;
}

// Every element that was asked for comes once, and from a chunk that has it.
void expect_complete(const LoadNeeds& needs, const AskedBoxes& asked, const GroupPlan& plan) {
  std::map<std::tuple<std::uint32_t, std::uint32_t>, std::int64_t> given;
  for (const AskedPart& part : parts_of_plan(needs, asked, plan)) {
    const GroupRead& read = plan.reads[part.read];
    const AskedBox& box = asked[part.member][part.asked];
    EXPECT_EQ(needs.tensors[read.tensor].stored, &needs.catalog->tensors[box.tensor]);
    EXPECT_TRUE(contains(needs.tensors[read.tensor].stored->chunks.box(read.chunk), part.box));
    EXPECT_TRUE(contains(box.box, part.box));
    given[{part.member, part.asked}] += part.box.volume();
  }
  for (std::uint32_t member = 0; member < asked.size(); ++member) {
    for (std::uint32_t i = 0; i < asked[member].size(); ++i) {
      EXPECT_EQ((given[{member, i}]), asked[member][i].box.volume());
    }
  }
}

// A tensor of which each rank's file has a row.
Catalog rows(int ranks) {
  Catalog catalog;
  StoredTensor tensor{{"w", DType::kF32, {ranks, 64}}, ChunkList(2)};
  for (std::uint32_t rank = 0; std::cmp_less(rank, ranks); ++rank) {
    catalog.files.push_back("__" + std::to_string(rank) + "_0.distcp");
    tensor.chunks.push_back({{{rank, 0}, {1, 64}}, rank, {0, 256}, {}});
  }
  catalog.tensors.push_back(std::move(tensor));
  return catalog;
}

TEST(AskedPlan, RanksThatSavedReadTheirOwnFilesAndNoOther) {
  for (const std::vector<TensorDesc>& model :
       {dense_model(), dense_model(false), with_optimizer(dense_model())}) {
    const Catalog catalog = saved({model, kTwoTensorRanks, 2, true});
    for (const std::int64_t group : {0, 1}) {
      const AskedBoxes asked =
          asked_by(catalog, kTwoTensorRanks, 2, static_cast<std::uint32_t>(group));
      const LoadNeeds needs = needs_of_members(catalog, {{group, group + 2}, group}, asked).value();
      const GroupPlan plan = plan_members(needs, {});
      EXPECT_TRUE(plan.keeps_own);
      for (const RankLoad& member : plan.members) {
        EXPECT_EQ(member.opens, 2);  // files that each rank saved
        EXPECT_EQ(member.foreign_opens, 0);
        EXPECT_EQ(member.foreign_bytes, 0);
        EXPECT_GT(member.bytes, 0);
      }
      expect_complete(needs, asked, plan);
    }
  }
}

TEST(AskedPlan, OtherLayoutsGetEveryElementOnce) {
  constexpr ParallelConfig kOne{};
  constexpr ParallelConfig kFour{.tensor = 4, .expert_tensor = 4};
  const Catalog catalog = saved({with_optimizer(dense_model()), kTwoTensorRanks, 2, true});
  for (const ParallelConfig& config : {kOne, kTwoTensorRanks, kFour}) {
    for (std::int64_t group = 0; group < config.tensor; ++group) {
      const AskedBoxes asked = asked_by(catalog, config, 3, static_cast<std::uint32_t>(group));
      const std::vector<std::int64_t> ranks = {group, group + config.tensor,
                                               group + 2 * config.tensor};
      const LoadNeeds needs = needs_of_members(catalog, {ranks, group}, asked).value();
      for (const AskedRule& rule : {AskedRule{}, AskedRule{{1, 9}}, AskedRule{{}, true}}) {
        expect_complete(needs, asked, plan_members(needs, rule));
      }
    }
  }
}

TEST(AskedPlan, PiecesOfAChunkGoToWhoeverAskedForThem) {
  const Catalog catalog = rows(4);
  const Box all = Box::whole({4, 64});
  const AskedBoxes asked = {{{0, all}}, {{0, {{0, 0}, {4, 32}}}, {0, {{2, 8}, {1, 4}}}}, {}};
  const LoadNeeds needs = needs_of_members(catalog, {{0, 1, 2}, 0}, asked).value();
  expect_complete(needs, asked, plan_members(needs, {}));
}

TEST(AskedPlan, WhereSendingIsDearEachReadsForItself) {
  const Catalog catalog = rows(4);
  const Box all = Box::whole({4, 64});
  const AskedBoxes asked = {{{0, all}}, {{0, all}}};
  const LoadNeeds needs = needs_of_members(catalog, {{0, 1}, 0}, asked).value();
  const GroupPlan shared = plan_members(needs, {});
  EXPECT_EQ(shared.members[0].bytes + shared.members[1].bytes, 4 * 256);
  EXPECT_EQ(shared.members[0].sent_bytes, 512);
  // Two files read and two sent, or four read: sending has to cost more than reading.
  EXPECT_EQ(plan_members(needs, {{1, 1}}).members[0].sent_bytes, 512);
  const GroupPlan alone = plan_members(needs, {{1, 2}});
  for (const RankLoad& member : alone.members) {
    EXPECT_EQ(member.bytes, 4 * 256);
    EXPECT_EQ(member.sent_bytes, 0);
  }
  expect_complete(needs, asked, alone);
  EXPECT_EQ(plan_members(needs, {{2, 1}}).members[0].sent_bytes, 512);
}

TEST(AskedPlan, WhoReadsForItselfReadsTheCopyInItsOwnFile) {
  Catalog catalog = rows(2);
  for (const std::uint32_t row : {0U, 1U}) {
    catalog.tensors[0].chunks.push_back({{{row, 0}, {1, 64}}, 1 - row, {256, 256}, {}});
  }
  const AskedBoxes asked(2, {{0, Box::whole({2, 64})}});
  const LoadNeeds needs = needs_of_members(catalog, {{0, 1}, 0}, asked).value();
  for (const RankLoad& member : plan_members(needs, {{1, 9}}).members) {
    EXPECT_EQ(member.bytes, 512);
    EXPECT_EQ(member.foreign_bytes, 0);
  }
}

TEST(AskedPlan, AtOnePriceWhatIsSharedIsSent) {
  // Unevenly: reading all oneself would be no heavier.
  Catalog catalog = rows(3);
  const AskedBoxes asked = {{{0, {{0, 0}, {2, 64}}}, {0, {{2, 0}, {1, 64}}}},
                            {{0, {{0, 0}, {2, 64}}}, {0, {{2, 0}, {1, 64}}}}};
  const LoadNeeds needs = needs_of_members(catalog, {{0, 1}, 0}, asked).value();
  EXPECT_EQ(plan_members(needs, {}).members[0].sent_bytes, 512);
  EXPECT_EQ(plan_members(needs, {{1, 2}}).members[0].sent_bytes, 0);
}

TEST(AskedPlan, WhoeverReadsAChunkTooNobodyGetsItTwice) {
  const Catalog catalog = rows(1);
  const AskedBoxes asked(3, {{0, Box::whole({1, 64})}});
  const LoadNeeds needs = needs_of_members(catalog, {{0, 1, 2}, 0}, asked).value();
  GroupPlan plan;
  plan.reads = {{0, 0, 0, 0}, {1, 0, 0, 0}};
  expect_complete(needs, asked, plan);
}

TEST(AskedPlan, AnOwnerReadsAllThatItsFileHas) {
  Catalog catalog = rows(4);
  AskedBoxes asked(2);
  for (std::uint32_t i = 0; i < 4; ++i) {
    catalog.tensors[0].chunks.set_location(i, 1, {i * std::uint64_t{256}, 256});
    for (std::vector<AskedBox>& member : asked) member.push_back({0, {{i, 0}, {1, 64}}});
  }
  const LoadNeeds needs = needs_of_members(catalog, {{0, 1}, 0}, asked).value();
  EXPECT_EQ(plan_members(needs, {}).members[0].foreign_bytes, 512);
  const GroupPlan owned = plan_members(needs, {{1, 9}, true});
  EXPECT_EQ(owned.members[0].bytes, 0);
  EXPECT_EQ(owned.members[1].bytes, 4 * 256);
  EXPECT_EQ(owned.members[1].foreign_bytes, 0);
  expect_complete(needs, asked, owned);
}

TEST(AskedPlan, ReadsGoThroughEachFileFromItsBeginning) {
  const Catalog catalog = saved({dense_model(), kTwoTensorRanks, 2, true});
  const AskedBoxes asked = asked_by(catalog, {}, 2, 0);
  const LoadNeeds needs = needs_of_members(catalog, {{0, 1}, 0}, asked).value();
  const GroupPlan plan = plan_members(needs, {});
  std::tuple<std::uint32_t, std::uint32_t, std::uint64_t> last;
  for (const GroupRead& read : plan.reads) {
    const ChunkList& chunks = needs.tensors[read.tensor].stored->chunks;
    const auto place =
        std::tuple(read.member, chunks.file(read.chunk), chunks.range(read.chunk).offset);
    EXPECT_LE(last, place);
    last = place;
  }
}

TEST(AskedPlan, WhatIsNotStoredIsNoPlan) {
  Catalog catalog = rows(4);
  const AskedBoxes outside = {{{0, {{3, 0}, {2, 64}}}}};
  const auto refused = needs_of_members(catalog, {{0}, 0}, outside);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kOutOfBounds);
  catalog.tensors[0].desc.shape = {5, 64};
  const AskedBoxes hole = {{{0, {{3, 0}, {2, 64}}}}};
  const auto missing = needs_of_members(catalog, {{0}, 0}, hole);
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, Code::kHole);
  EXPECT_NE(missing.error().message.find('w'), std::string::npos);
}

}  // namespace
}  // namespace shardwright

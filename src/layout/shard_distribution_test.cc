// SPDX-License-Identifier: Apache-2.0
#include "layout/shard_distribution.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <random>
#include <string>
#include <tuple>

namespace shardwright {
namespace {

using Ranks = std::vector<std::uint32_t>;
using Bytes = std::vector<std::uint64_t>;

const Ranks kZero = {0};
const Ranks kBoth = {0, 1};
const Ranks kThree = {0, 1, 2};

TEST(ShardDistribution, GivesEachShardToTheLightestHolder) {
  const SharedShard shards[] = {{"a", {0}, 10, kZero}, {"b", {0}, 4, kBoth}, {"c", {0}, 7, kBoth}};
  const Distribution result = distribute_shards(shards, 2);
  EXPECT_EQ(result.reader, (Ranks{0, 1, 1})) << "the rare one first, then the larger";
  EXPECT_EQ(result.load, (Bytes{10, 11}));
}

TEST(ShardDistribution, TiesGoByNameThenByOffsetAsNumbersThenToTheFirstRank) {
  const SharedShard shards[] = {{"a", {10}, 8, kBoth},
                                {"a", {9}, 8, kBoth},
                                {"a", {9, 0}, 8, kBoth},
                                {"a.b", {0}, 8, kBoth},
                                {"B", {0}, 8, kBoth}};
  // B, a(9), a(9, 0), a(10), a.b
  EXPECT_EQ(distribute_shards(shards, 2).reader, (Ranks{1, 1, 0, 0, 0}));
}

TEST(ShardDistribution, ShardsThatAnotherGroupSavesComeLast) {
  const SharedShard shards[] = {
      {"a", {0}, 100, kBoth, true}, {"b", {0}, 1, kBoth}, {"c", {0}, 50, kZero, true}};
  const Distribution result = distribute_shards(shards, 2);
  EXPECT_EQ(result.reader, (Ranks{1, 0, 0}));
  EXPECT_EQ(result.load, (Bytes{51, 100}));
}

TEST(ShardDistribution, SizesBeyondWhatADoubleHoldsAreCompared) {
  constexpr std::uint64_t kLarge = std::uint64_t{1} << 60;
  const SharedShard shards[] = {
      {"a", {0}, kLarge, kBoth}, {"b", {0}, kLarge + 1, kBoth}, {"c", {0}, 1, kBoth}};
  EXPECT_EQ(distribute_shards(shards, 2).load, (Bytes{kLarge + 1, kLarge + 1}));
}

TEST(ShardDistribution, NoShardsAndNoBytesAreFine) {
  EXPECT_EQ(distribute_shards({}, 2).load, (Bytes{0, 0}));
  const SharedShard shards[] = {{"a", {0}, 0, kBoth}, {"b", {0}, 0, kBoth}};
  EXPECT_EQ(distribute_shards(shards, 2).reader, (Ranks{0, 0}));
}

TEST(DistributionBySource, KeepsWhatOneRankStoredTogether) {
  const SharedShard shards[] = {{"a", {0}, 10, kBoth, false, 0},
                                {"b", {0}, 10, kBoth, false, 0},
                                {"c", {0}, 10, kBoth, false, 0}};
  EXPECT_EQ(distribute_by_source(shards, 2).load, (Bytes{30, 0})) << "however unbalanced";
}

TEST(DistributionBySource, LooksForACommonHolderWhereTheSourceHoldsNotAll) {
  const Ranks late = {1, 2};
  const SharedShard shards[] = {{"a", {0}, 9, kThree, false, 0},
                                {"b", {0}, 9, late, false, 0},
                                {"c", {0}, 5, kThree, false, 1}};
  const Distribution result = distribute_by_source(shards, 3);
  EXPECT_EQ(result.reader, (Ranks{1, 1, 1})) << "the large group first, to the first of 1 and 2";
  EXPECT_EQ(result.load, (Bytes{0, 23, 0}));
}

TEST(DistributionBySource, TheLargestGroupIsFirstAndTheRestSeesItsLoad) {
  const Ranks one = {1};
  const SharedShard shards[] = {{"a", {0}, 3, kBoth, false, 5},  // rank 5 is not of the group
                                {"b", {0}, 4, kBoth, false, 6},
                                {"c", {0}, 2, kZero, false, 7},  // no common holder
                                {"d", {0}, 2, one, false, 7},
                                {"e", {0}, 1, kBoth}};
  const Distribution result = distribute_by_source(shards, 2);
  EXPECT_EQ(result.reader, (Ranks{1, 0, 0, 1, 1}));
  EXPECT_EQ(result.load, (Bytes{6, 6}));
}

TEST(DistributionBySource, EqualGroupsGoByTheirSource) {
  const SharedShard shards[] = {{"a", {0}, 4, kBoth, false, 9}, {"b", {0}, 4, kBoth, false, 8}};
  EXPECT_EQ(distribute_by_source(shards, 2).reader, (Ranks{1, 0}));
}

// The rule as it reads, on shards that are made up.
Distribution by_the_book(const std::vector<SharedShard>& shards, std::size_t ranks) {
  std::vector<std::tuple<bool, std::size_t, std::int64_t, std::string, std::vector<std::int64_t>,
                         std::size_t>>
      order;
  for (std::size_t i = 0; i < shards.size(); ++i) {
    const SharedShard& shard = shards[i];
    order.emplace_back(shard.cross_group, shard.holders.size(),
                       -static_cast<std::int64_t>(shard.bytes), shard.key,
                       std::vector<std::int64_t>(shard.offset.begin(), shard.offset.end()), i);
  }
  std::ranges::sort(order);
  Distribution result{Ranks(shards.size()), Bytes(ranks, 0)};
  for (const auto& entry : order) {
    const std::size_t index = std::get<5>(entry);
    std::uint32_t best = shards[index].holders.front();
    for (const std::uint32_t rank : shards[index].holders) {
      if (std::pair(result.load[rank], rank) < std::pair(result.load[best], best)) best = rank;
    }
    result.reader[index] = best;
    result.load[best] += shards[index].bytes;
  }
  return result;
}

TEST(ShardDistribution, IsTheRuleAsItReadsWhateverTheOrderOfShards) {
  std::mt19937 random(17);
  const auto below = [&](std::uint32_t bound) {
    return static_cast<std::uint32_t>(random() % bound);
  };
  for (int round = 0; round < 300; ++round) {
    const std::uint32_t ranks = 1 + below(6);
    std::deque<std::string> names;
    std::deque<Ranks> holders;
    std::vector<SharedShard> shards;
    for (std::uint32_t i = below(40); i > 0; --i) {
      names.push_back("key" + std::to_string(i / 3));
      Ranks& some = holders.emplace_back();
      for (std::uint32_t rank = 0; rank < ranks; ++rank) {
        if (below(3) != 0) some.push_back(rank);
      }
      if (some.empty()) some.push_back(below(ranks));
      shards.push_back({names.back(), {i % 3, 0}, below(5), some, below(4) == 0});
    }
    const Distribution expected = by_the_book(shards, ranks);
    const Distribution result = distribute_shards(shards, ranks);
    ASSERT_EQ(result.reader, expected.reader) << "round " << round;
    ASSERT_EQ(result.load, expected.load) << "round " << round;
    std::ranges::reverse(shards);
    ASSERT_EQ(distribute_shards(shards, ranks).load, expected.load) << "round " << round;
    ASSERT_EQ(distribute_by_source(shards, ranks).load, expected.load) << "without any source";
  }
}

}  // namespace
}  // namespace shardwright

// SPDX-License-Identifier: Apache-2.0
#include "model/indexer_layers.h"

#include <gtest/gtest.h>

#include "model/expert_layers.h"

namespace shardwright {
namespace {

const IndexerTypes kFourth = {"full",   "full", "full",   "shared", "shared",
                              "shared", "full", "shared", "shared", "shared"};

TEST(IndexerLayers, EachFourthBehindTheFirstThree) {
  EXPECT_EQ(types_of_schedule({4, 3}, 10), kFourth);
  const auto schedule = schedule_of_types("indexer_types", kFourth, 10);
  ASSERT_TRUE(schedule);
  EXPECT_EQ(*schedule, (IndexerSchedule{4, 3}));
}

TEST(IndexerLayers, AFrequencyOfOneIsEveryLayer) {
  const IndexerTypes every(5, "full");
  EXPECT_EQ(types_of_schedule({1, 2}, 5), every);
  EXPECT_EQ(*schedule_of_types("indexer_types", every, 5), IndexerSchedule{});
}

TEST(IndexerLayers, TheFirstLayerAlwaysHasOne) {
  EXPECT_EQ(types_of_schedule({2, 0}, 3), (IndexerTypes{"full", "shared", "full"}));
}

TEST(IndexerLayers, ListsThatNoScheduleGives) {
  const IndexerTypes uneven = {"full", "shared", "full", "full", "shared"};
  const auto schedule = schedule_of_types("indexer_types", uneven, 5);
  ASSERT_TRUE(schedule);
  EXPECT_EQ(*schedule, std::nullopt);
}

TEST(IndexerLayers, WhatDoesNotFitIsRefused) {
  const auto few = schedule_of_types("indexer_types", {"full"}, 2);
  ASSERT_FALSE(few);
  EXPECT_NE(few.error().message.find("found 1 entries, expected 2"), std::string::npos);
  const auto other = schedule_of_types("indexer_types", {"half"}, 1);
  ASSERT_FALSE(other);
  EXPECT_NE(other.error().message.find("'half'"), std::string::npos);
}

TEST(ExpertNumbers, AreCountedFromNull) {
  EXPECT_EQ(experts_numbered(std::vector<std::int64_t>{1, 3}, 4), (ExpertLayers{0, 1, 0, 1}));
}

TEST(ExpertTypes, BothWays) {
  const std::vector<std::string> types = {"dense", "sparse", "sparse"};
  const auto experts = experts_of_types("mlp_layer_types", types, 3);
  ASSERT_TRUE(experts);
  EXPECT_EQ(*experts, (ExpertLayers{0, 1, 1}));
  EXPECT_EQ(to_mlp_types(*experts), types);
}

TEST(ExpertTypes, WhatDoesNotFitIsRefused) {
  const auto few = experts_of_types("mlp_layer_types", {"dense"}, 2);
  ASSERT_FALSE(few);
  EXPECT_NE(few.error().message.find("found 1 entries, expected 2"), std::string::npos);
  const auto other = experts_of_types("mlp_layer_types", {"moe"}, 1);
  ASSERT_FALSE(other);
  EXPECT_NE(other.error().message.find("'moe'"), std::string::npos);
}

}  // namespace
}  // namespace shardwright

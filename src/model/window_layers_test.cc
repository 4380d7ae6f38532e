// SPDX-License-Identifier: Apache-2.0
#include "model/window_layers.h"

#include <gtest/gtest.h>

namespace shardwright {
namespace {

TEST(WindowLayers, APeriodIsWrittenAsANumber) {
  const auto windowed = from_layer_types(
      {"sliding_attention", "full_attention", "sliding_attention", "full_attention"}, 4);
  ASSERT_TRUE(windowed);
  EXPECT_EQ(*windowed, (WindowedLayers{1, 0, 1, 0}));
  EXPECT_EQ(to_skip_frequency(*windowed), ArgValue{std::int64_t{2}});
}

TEST(WindowLayers, EndsOfThePeriodMayBeMissing) {
  EXPECT_EQ(to_skip_frequency(every_so_many_whole(3, 5)), ArgValue{std::int64_t{3}});
  EXPECT_EQ(every_so_many_whole(3, 5), (WindowedLayers{1, 1, 0, 1, 1}));
}

TEST(WindowLayers, AllAndNoneHaveValuesOfTheirOwn) {
  EXPECT_EQ(to_skip_frequency({1, 1, 1}), ArgValue{});
  EXPECT_EQ(to_skip_frequency({0, 0, 0}), ArgValue{std::int64_t{1}});
  EXPECT_EQ(*from_skip_frequency(ArgValue{}, 3), (WindowedLayers{1, 1, 1}));
  EXPECT_EQ(*from_skip_frequency(ArgValue{std::int64_t{1}}, 3), (WindowedLayers{0, 0, 0}));
}

TEST(WindowLayers, AnyOtherPatternIsAList) {
  const WindowedLayers irregular{1, 0, 0, 1, 0};
  const ArgValue frequency = to_skip_frequency(irregular);
  EXPECT_EQ(frequency, ArgValue{irregular});
  EXPECT_EQ(*from_skip_frequency(frequency, 5), irregular);
  EXPECT_EQ(*from_layer_types(to_layer_types(irregular), 5), irregular);
}

TEST(WindowLayers, PatternsThatAlternateAreTwoCounts) {
  const WindowedLayers windowed{1, 1, 0, 1, 1, 0};
  EXPECT_EQ(to_attention_pattern(windowed), (ArgValue{WindowedLayers{2, 1}}));
  EXPECT_EQ(*from_window_argument(ArgValue{WindowedLayers{2, 1}}, 6), windowed);
  const WindowedLayers irregular{1, 0, 1, 1, 0, 0};
  const ArgValue words = to_attention_pattern(irregular);
  EXPECT_TRUE(std::holds_alternative<std::vector<std::string>>(words));
  EXPECT_EQ(*from_window_argument(words, 6), irregular);
  EXPECT_FALSE(from_window_argument(ArgValue{WindowedLayers{-1, 1}}, 6));
}

TEST(WindowLayers, AListOfTwoIsAListWhereThereAreTwoLayers) {
  EXPECT_EQ(*from_window_argument(ArgValue{WindowedLayers{1, 0}}, 2), (WindowedLayers{1, 0}));
}

TEST(WindowLayers, WhatDoesNotFitIsRefused) {
  const auto few = from_layer_types({"full_attention"}, 2);
  ASSERT_FALSE(few);
  EXPECT_NE(few.error().message.find("found 1 entries, expected 2"), std::string::npos);
  const auto other = from_layer_types({"linear_attention"}, 1);
  ASSERT_FALSE(other);
  EXPECT_NE(other.error().message.find("'linear_attention'"), std::string::npos);
  EXPECT_FALSE(from_skip_frequency(ArgValue{WindowedLayers{1}}, 2));
  EXPECT_FALSE(from_skip_frequency(ArgValue{std::int64_t{0}}, 2));
  EXPECT_FALSE(from_skip_frequency(ArgValue{std::string("2")}, 2));
}

}  // namespace
}  // namespace shardwright

// SPDX-License-Identifier: Apache-2.0
#include "layout/zero_partition.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace shardwright {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

ZeroGroup two() { return {{"a", {2, 3}, 0}, {"b", {4}, 0}}; }

TEST(ZeroPartition, CutsAGroupIntoRuns) {
  const std::vector<ZeroGroup> groups = {two()};
  // 10 elements and 2 of padding, over three ranks.
  EXPECT_THAT(cut_groups(groups, {{4}, {4}, {4}}).value(),
              ElementsAre(ZeroPiece{0, 0, 0, 0, 0, 4}, ZeroPiece{0, 1, 0, 0, 4, 6},
                          ZeroPiece{1, 1, 0, 2, 0, 2}, ZeroPiece{1, 2, 0, 0, 2, 4}));
}

TEST(ZeroPartition, TakesPaddingUpToTwoElementsARank) {
  const std::vector<ZeroGroup> groups = {two()};
  EXPECT_TRUE(cut_groups(groups, {{6}, {6}}));
  EXPECT_TRUE(cut_groups(groups, {{6}, {4}})) << "none is cut off too";
  const auto refused = cut_groups(groups, {{7}, {7}});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kZeroLayout);
  EXPECT_THAT(refused.error().message,
              HasSubstr("group 0: found 14 elements in its buffers, expected 10"));
}

TEST(ZeroPartition, LeavesOutWhatAlignsParameters) {
  const std::vector<ZeroGroup> groups = {{{"a", {3}, 5}, {"b", {4}, 0}}};
  EXPECT_THAT(cut_groups(groups, {{6}, {6}}).value(),
              ElementsAre(ZeroPiece{0, 0, 0, 0, 0, 3}, ZeroPiece{1, 1, 0, 2, 0, 4}));
  const std::vector<ZeroGroup> wrong = {{{"a", {3}, -1}}};
  EXPECT_EQ(cut_groups(wrong, {{3}}).error().code, Code::kZeroLayout);
}

TEST(ZeroPartition, TakesRanksWithoutAnything) {
  const std::vector<ZeroGroup> groups = {{{"a", {3}, 0}}, {}};
  EXPECT_THAT(cut_groups(groups, {{0, 0}, {3, 0}}).value(),
              ElementsAre(ZeroPiece{0, 1, 0, 0, 0, 3}));
  const std::vector<ZeroGroup> one = {{{"a", {3}, 0}}};
  EXPECT_THAT(cut_groups(one, {{2}, {0}, {1}}).value(),
              ElementsAre(ZeroPiece{0, 0, 0, 0, 0, 2}, ZeroPiece{0, 2, 0, 0, 2, 3}));
}

TEST(ZeroPartition, RefusesBuffersThatAreTooShort) {
  const std::vector<ZeroGroup> groups = {two()};
  const auto refused = cut_groups(groups, {{4}, {4}});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kZeroLayout);
  EXPECT_THAT(refused.error().message, HasSubstr("parameter b: found 2 elements"));
}

TEST(ZeroPartition, RefusesRanksWithOtherGroups) {
  const std::vector<ZeroGroup> groups = {two()};
  EXPECT_THAT(cut_groups(groups, {{10}, {}}).error().message, HasSubstr("rank 1: found 0 groups"));
  EXPECT_THAT(cut_parameters(groups, {{5}, {5, 0}}).error().message,
              HasSubstr("rank 1: found 2 groups"));
}

TEST(ZeroPartition, CutsEachParameterAndDropsItsPadding) {
  const std::vector<ZeroGroup> groups = {two()};
  // a: 3 a rank; b: 2 a rank.
  EXPECT_THAT(cut_parameters(groups, {{5}, {5}}).value(),
              ElementsAre(ZeroPiece{0, 0, 0, 0, 0, 3}, ZeroPiece{0, 1, 0, 0, 3, 6},
                          ZeroPiece{1, 0, 0, 3, 0, 2}, ZeroPiece{1, 1, 0, 3, 2, 4}));
  // Over four ranks: a has 2 a rank, the last none; b has 1.
  const auto padded = cut_parameters(groups, {{3}, {3}, {3}, {3}}).value();
  EXPECT_THAT(std::vector(padded.begin(), padded.begin() + 3),
              ElementsAre(ZeroPiece{0, 0, 0, 0, 0, 2}, ZeroPiece{0, 1, 0, 0, 2, 4},
                          ZeroPiece{0, 2, 0, 0, 4, 6}));
  EXPECT_EQ(padded.size(), 7U);
}

TEST(ZeroPartition, FollowsAParameterOverTheEndOfABuffer) {
  const std::vector<ZeroGroup> groups = {{{"a", {4}, 0}}, {{"b", {}, 0}}};
  EXPECT_THAT(cut_parameters(groups, {{3, 2}}).value(),
              ElementsAre(ZeroPiece{0, 0, 0, 0, 0, 3}, ZeroPiece{0, 0, 1, 0, 3, 4},
                          ZeroPiece{1, 0, 1, 1, 0, 1}));
}

TEST(ZeroPartition, RefusesBuffersOfAnotherLength) {
  const std::vector<ZeroGroup> groups = {two()};
  EXPECT_THAT(cut_parameters(groups, {{5}, {4}}).error().message,
              HasSubstr("parameter b: found 1 elements for it in the buffers of rank 1"));
  const auto longer = cut_parameters(groups, {{5}, {6}});
  ASSERT_FALSE(longer);
  EXPECT_EQ(longer.error().code, Code::kZeroLayout);
  EXPECT_THAT(longer.error().message, HasSubstr("rank 1: found 6 elements"));
}

TEST(ZeroPartition, RefusesSizesThatNothingHas) {
  const std::vector<ZeroGroup> groups = {
      {{"a", {std::int64_t{1} << 40, std::int64_t{1} << 40}, 0}}};
  EXPECT_EQ(cut_groups(groups, {{4}}).error().code, Code::kZeroLayout);
  EXPECT_EQ(cut_parameters(groups, {{4}}).error().code, Code::kZeroLayout);
  EXPECT_THAT(cut_parameters({}, {{0}}).value(), IsEmpty());
}

}  // namespace
}  // namespace shardwright

// SPDX-License-Identifier: Apache-2.0
#include "layout/layer_wise_share.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace shardwright {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(LayerWiseShare, IsDealtOutFromTheSmallestThereAndBack) {
  // The source's own example has ten parameters and four ranks, here in groups of two kinds.
  const std::vector<LayerWiseGroup> groups = {{{0, 1, 2, 3, 4, 5}}, {{6, 7, 8, 9}}};
  const std::vector<std::int64_t> elements = {90, 80, 70, 60, 50, 40, 10, 11, 12, 13};
  const auto of = [&](std::size_t number) {
    return layer_wise_share(groups, elements, {number, 4, 0, 1});
  };
  EXPECT_THAT(of(0), ElementsAre(ElementsAre(2, 1), ElementsAre(6)));
  EXPECT_THAT(of(1), ElementsAre(ElementsAre(3, 0), ElementsAre(7)));
  EXPECT_THAT(of(2), ElementsAre(ElementsAre(4), ElementsAre(8)));
  EXPECT_THAT(of(3), ElementsAre(ElementsAre(5), ElementsAre(9)));
}

TEST(LayerWiseShare, TakesThoseOfOneSizeInTheirOrder) {
  const std::vector<LayerWiseGroup> groups = {{{2, 0}}, {{1}}};
  const std::vector<std::int64_t> elements = {5, 5, 5};
  EXPECT_THAT(layer_wise_share(groups, elements, {0, 2, 0, 1}),
              ElementsAre(ElementsAre(2), IsEmpty()));
  EXPECT_THAT(layer_wise_share(groups, elements, {1, 2, 0, 1}),
              ElementsAre(ElementsAre(0), ElementsAre(1)));
}

TEST(LayerWiseShare, CountsExpertsForThemselves) {
  const std::vector<LayerWiseGroup> groups = {{{0, 1}}, {{2, 3, 4}, true}};
  const std::vector<std::int64_t> elements = {1, 2, 9, 8, 7};
  EXPECT_THAT(layer_wise_share(groups, elements, {0, 2, 0, 1}),
              ElementsAre(ElementsAre(0), ElementsAre(4, 3, 2)));
  EXPECT_THAT(layer_wise_share(groups, elements, {3, 4, 1, 2}),
              ElementsAre(IsEmpty(), ElementsAre(3, 2)));
}

TEST(LayerWiseShare, OfOneRankIsEverythingAsItStands) {
  const std::vector<LayerWiseGroup> groups = {{{0, 1}}, {{2, 3}, true}};
  const std::vector<std::int64_t> elements = {4, 3, 2, 1};
  EXPECT_THAT(layer_wise_share(groups, elements, {}),
              ElementsAre(ElementsAre(0, 1), ElementsAre(2, 3)));
}

}  // namespace
}  // namespace shardwright

// SPDX-License-Identifier: Apache-2.0
#include "format/saved_name.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "io/memory_directory.h"

namespace shardwright {
namespace {
using testing::HasSubstr;

Status checked(const std::string& path, std::string_view saved_as, std::size_t others = 0) {
  MemoryDirectory directory;
  directory.put(path, "");
  const auto file = directory.open(path).value();
  return check_saved_name(*file, saved_as, others);
}

TEST(SavedName, OfAnotherRankIsRefused) {
  const Status swapped = checked("step/zero_pp_rank_1_mp_rank_00_optim_states.pt",
                                 "zero_pp_rank_0_mp_rank_00_optim_states");
  ASSERT_FALSE(swapped);
  EXPECT_EQ(swapped.error().code, Code::kRankMisplaced);
  EXPECT_THAT(swapped.error().message,
              HasSubstr("was saved as zero_pp_rank_0_mp_rank_00_optim_states.pt"));
  EXPECT_FALSE(checked("consolidated.10.pth", "consolidated.01"));
  EXPECT_FALSE(checked("layer_02-model_01-model_states.pt", "layer_02-model_00-model_states", 1));
  EXPECT_TRUE(checked("layer_03-model_01-model_states.pt", "layer_02-model_01-model_states", 1));
}

Status in_order(const std::vector<std::pair<std::string, std::string>>& files) {
  SavedOrder order;
  for (const auto& [path, saved_as] : files) SW_TRY(order.add(path, saved_as));
  return {};
}

TEST(SavedName, LayersMayBeNumberedAnewButKeepTheirOrder) {
  EXPECT_TRUE(in_order({{"layer_03.pt", "layer_03"}, {"layer_04.pt", "layer_9"}}));
  EXPECT_TRUE(in_order({{"layer_03.pt", "layer_9"}, {"layer_04.pt", "layer_10"}}));
  EXPECT_TRUE(in_order({{"layer_03.pt", "layer_04"}, {"layer_04.pt", "archive"}}));
  EXPECT_TRUE(in_order({{"layer_03.pt", "layer_04"}, {"layer_04.pt", "norm_03"}}));
  const Status swapped = in_order(
      {{"a/layer_03.pt", "layer_04"}, {"a/layer_04.pt", "x"}, {"a/layer_05.pt", "layer_03"}});
  ASSERT_FALSE(swapped);
  EXPECT_EQ(swapped.error().code, Code::kRankMisplaced);
  EXPECT_THAT(swapped.error().message,
              HasSubstr("a/layer_05.pt: was saved as layer_03.pt, in front of a/layer_03.pt, which "
                        "was saved as layer_04.pt"));
}

TEST(SavedName, SaysNothingWhereItIsNoRanksName) {
  EXPECT_TRUE(checked("consolidated.01.pth", "consolidated.01"));
  EXPECT_TRUE(checked("consolidated.01.pth", "consolidated.1")) << "the same number";
  EXPECT_TRUE(checked("consolidated.00.pth", "consolidated"));
  EXPECT_TRUE(checked("consolidated.01.pth", "archive")) << "saved through an open file";
  EXPECT_TRUE(checked("consolidated.01.pth", "")) << "a file of before archives";
}

}  // namespace
}  // namespace shardwright

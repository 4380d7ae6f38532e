// SPDX-License-Identifier: Apache-2.0
#include "format/deepspeed/zero_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "format/deepspeed/zero_file_name.h"

namespace shardwright {
namespace {

using ::testing::HasSubstr;

std::vector<DirectoryEntry> entries_of(std::initializer_list<const char*> names) {
  std::vector<DirectoryEntry> entries;
  for (const char* name : names) entries.push_back({name, false, 1});
  return entries;
}

Error refused(std::initializer_list<const char*> names) {
  const auto found = list_zero_files(entries_of(names));
  EXPECT_FALSE(found);
  return found ? Error() : found.error();
}

TEST(ZeroFileName, SaysWhoseAFileIs) {
  const auto shares = parse_zero_file("bf16_zero_pp_rank_12_mp_rank_03_optim_states.pt");
  ASSERT_TRUE(shares);
  EXPECT_EQ(shares->holds, ZeroFileName::Holds::kOptimizer);
  EXPECT_EQ(shares->data_rank, 12);
  EXPECT_EQ(shares->model_rank, 3);
  const auto model = parse_zero_file("mp_rank_00_model_states.pt");
  ASSERT_TRUE(model);
  EXPECT_EQ(model->holds, ZeroFileName::Holds::kModel);
  EXPECT_EQ(model->data_rank, std::nullopt);
  for (const char* name :
       {"mp_rank_00", "mp_rank_00_optim_states.pt", "zero_pp_rank_1_mp_rank_0_model_states.pt.tmp",
        "fp32_zero_pp_rank_1_mp_rank_00_optim_states.pt", "bf16_mp_rank_00_model_states.pt",
        "zero_pp_rank__mp_rank_00_model_states.pt", "expert_3_mp_rank_00_model_states.pt"}) {
    EXPECT_FALSE(parse_zero_file(name)) << name;
  }
}

TEST(ZeroFileName, SaysWhichLayerAFileIs) {
  const auto layer = parse_layer_file("layer_03-model_01-model_states.pt");
  ASSERT_TRUE(layer);
  EXPECT_EQ(layer->layer, 3);
  EXPECT_EQ(layer->tensor_rank, 1);
  EXPECT_FALSE(parse_layer_file("layer_03_expert_1_mp_rank_00_model_states.pt"));
  EXPECT_FALSE(parse_layer_file("layer_-model_01-model_states.pt"));
}

TEST(ZeroFiles, AreOrderedByRank) {
  const auto files = list_zero_files(entries_of(
      {"zero_pp_rank_10_mp_rank_00_optim_states.pt", "latest", "mp_rank_00_model_states.pt"}));
  EXPECT_FALSE(files) << "ranks 0 to 9 are missing";
  const auto found = list_zero_files(
      entries_of({"mp_rank_01_model_states.pt", "zero_pp_rank_1_mp_rank_00_optim_states.pt",
                  "zero_pp_rank_0_mp_rank_00_optim_states.pt", "mp_rank_00_model_states.pt"}));
  const std::vector<ZeroFiles>& ranks = found.value();
  ASSERT_EQ(ranks.size(), 2U);
  EXPECT_EQ(ranks[0].optimizer.size(), 2U);
  EXPECT_EQ(ranks[0].optimizer.at(1), "zero_pp_rank_1_mp_rank_00_optim_states.pt");
  EXPECT_EQ(ranks[0].model.at(0), "mp_rank_00_model_states.pt");
  EXPECT_EQ(ranks[1].model.at(0), "mp_rank_01_model_states.pt");
}

TEST(ZeroFiles, RefusesWhatIsNotWhole) {
  const Error missing =
      refused({"mp_rank_00_model_states.pt", "zero_pp_rank_0_mp_rank_00_optim_states.pt",
               "zero_pp_rank_2_mp_rank_00_optim_states.pt"});
  EXPECT_EQ(missing.code, Code::kZeroLayout);
  EXPECT_THAT(missing.message, HasSubstr("no such file of rank 1"));
  EXPECT_EQ(refused({"zero_pp_rank_0_mp_rank_00_optim_states.pt"}).code, Code::kZeroLayout);
  const Error both =
      refused({"mp_rank_00_model_states.pt", "bf16_zero_pp_rank_0_mp_rank_00_optim_states.pt",
               "zero_pp_rank_0_mp_rank_00_optim_states.pt"});
  EXPECT_EQ(both.code, Code::kZeroLayout);
  EXPECT_THAT(both.message, HasSubstr("of one rank"));
  EXPECT_THAT(refused({"mp_rank_00_model_states.pt", "mp_rank_02_model_states.pt"}).message,
              HasSubstr("found mp_rank_02_model_states.pt without mp_rank_01_model_states.pt"));
}

}  // namespace
}  // namespace shardwright

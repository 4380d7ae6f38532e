// SPDX-License-Identifier: Apache-2.0
#include "layout/sample_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "layout/rank_folder.h"

namespace shardwright {
namespace {

using ::testing::ElementsAre;

std::vector<NumberedFolder> folders_named(std::initializer_list<const char*> names) {
  std::vector<NumberedFolder> folders;
  for (const char* name : names) {
    folders.push_back({name, *parse_rank_folder(name), "model_optim_rng.pt", 1});
  }
  return folders;
}

std::vector<NumberedFolder> grid(std::int64_t tensor, std::int64_t pipeline) {
  std::vector<NumberedFolder> models;
  for (std::int64_t p = 0; p < pipeline; ++p) {
    for (std::int64_t t = 0; t < tensor; ++t) {
      const std::string name =
          rank_folder_name({t, p, 0, 0}, {tensor, pipeline}, RankNaming::kMegatron);
      models.push_back({name, *parse_rank_folder(name), "model_optim_rng.pt", 1});
    }
  }
  return models;
}

TEST(SampleChoice, TakesOneOfEachFurtherNumberAndBothEnds) {
  EXPECT_THAT(choose_samples(grid(6, 3), 10),
              ElementsAre("mp_rank_00_000", "mp_rank_00_001", "mp_rank_00_002", "mp_rank_05_002"));
  EXPECT_THAT(choose_samples(grid(17, 1), 40), ElementsAre("mp_rank_00", "mp_rank_16"));
  EXPECT_TRUE(choose_samples({}, 10).empty());
}

TEST(SampleChoice, TakesAllOfAFew) {
  EXPECT_EQ(choose_samples(grid(8, 2), 48).size(), 16U);
  EXPECT_THAT(choose_samples(folders_named({"mp_rank_01_001", "mp_rank_00_000"}), 10),
              ElementsAre("mp_rank_00_000", "mp_rank_01_001"));
}

TEST(SampleChoice, SpreadsWhatIsTooMany) {
  std::vector<NumberedFolder> models;
  for (std::int64_t p = 0; p < 1000; ++p) {
    const std::string name = rank_folder_name({0, p, 0, 0}, {1, 1000}, RankNaming::kMegatron);
    models.push_back({name, {0, p}, "model_optim_rng.pt", 1});
  }
  const auto chosen = choose_samples(models, 5);
  EXPECT_THAT(chosen, ElementsAre("mp_rank_00_000", "mp_rank_00_249", "mp_rank_00_499",
                                  "mp_rank_00_749", "mp_rank_00_999"));
}

}  // namespace
}  // namespace shardwright

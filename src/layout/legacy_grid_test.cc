// SPDX-License-Identifier: Apache-2.0
#include "layout/legacy_grid.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace shardwright {
namespace {

using ::testing::ElementsAre;

std::vector<std::string> folders(const ParallelConfig& config,
                                 RankNaming naming = RankNaming::kMegatron) {
  std::vector<std::string> names;
  const auto ranks = legacy_grid(config);
  if (!ranks) return {ranks.error().text()};
  for (const LegacyRank& rank : *ranks) names.push_back(rank_folder_name(rank, config, naming));
  return names;
}

TEST(RankFolder, HasCoordinatesForAxesLongerThanOne) {
  EXPECT_THAT(folders({2, 1, 1, 1, 2}), ElementsAre("mp_rank_00", "mp_rank_01"));
  EXPECT_THAT(folders({1, 2, 1, 1, 1}), ElementsAre("mp_rank_00_000", "mp_rank_00_001"));
  EXPECT_THAT(folders({1, 1, 1, 2, 1}), ElementsAre("mp_rank_00_000", "mp_rank_00_001"));
  EXPECT_THAT(folders({1, 1, 1, 2, 1}, RankNaming::kTpPpEp),
              ElementsAre("mp_rank_00_000_000", "mp_rank_00_000_001"));
  EXPECT_EQ(rank_folder_name({123, 1000, 4, 0}, {200, 2000, 1, 8, 1}, RankNaming::kMegatron),
            "mp_rank_123_1000_004");
  EXPECT_EQ(rank_folder_pattern({2, 1, 1, 4, 2}, RankNaming::kMegatron),
            "mp_rank_{tp:02d}_{ep:03d}");
}

TEST(RankFolder, IsParsedStrictly) {
  EXPECT_THAT(*parse_rank_folder("mp_rank_07"), ElementsAre(7));
  EXPECT_THAT(*parse_rank_folder("mp_rank_100_002_1000"), ElementsAre(100, 2, 1000));
  EXPECT_THAT(*parse_rank_folder("mp_rank_00_001_002_003"), ElementsAre(0, 1, 2, 3));
  for (const char* name : {"mp_rank_", "mp_rank_00_", "mp_rank_00_model_states.pt", "mp_rank_-1",
                           "mp_rank_+1", "mp_rank_00__001", "rank_00", "mp_rank_0x",
                           "mp_rank_00_001_002_003_004", "mp_rank_99999999999999999999"}) {
    EXPECT_FALSE(parse_rank_folder(name)) << name;
  }
}

// Walks the ranks of a run one by one, with their own formulas, and collects what they call their
// files. A run has as many ranks per pipeline stage as both grids need.
std::set<std::string> names_of_a_run(const ParallelConfig& config) {
  std::set<std::string> names;
  const std::int64_t stage = config.tensor * config.expert * config.expert_tensor;
  for (std::int64_t rank = 0; rank < stage * config.pipeline; ++rank) {
    const std::int64_t pipeline = rank / stage;
    const std::int64_t tensor = rank % config.tensor;
    const std::int64_t expert = (rank % stage) / config.expert_tensor % config.expert;
    std::string name = "mp_rank_";
    for (int width = 2, place = 10; width > 1 && tensor < place; place /= 10, --width) name += "0";
    name += std::to_string(tensor);
    const auto add = [&](std::int64_t number) {
      const std::string digits = std::to_string(number);
      name += "_" + std::string(digits.size() < 3 ? 3 - digits.size() : 0, '0') + digits;
    };
    if (config.pipeline > 1) add(pipeline);
    if (config.expert > 1) add(expert);
    names.insert(name);
  }
  return names;
}

TEST(LegacyGrid, HasTheNamesThatTheRanksOfARunUse) {
  int sparse = 0;
  for (std::int64_t tp = 1; tp <= 8; ++tp) {
    for (std::int64_t ep = 1; ep <= 8; ++ep) {
      for (std::int64_t etp = 1; etp <= tp; ++etp) {
        if (tp % etp != 0) continue;
        for (std::int64_t pp = 1; pp <= 2; ++pp) {
          const ParallelConfig config{tp, pp, 1, ep, etp};
          const std::vector<std::string> names = folders(config);
          const std::set<std::string> unique(names.begin(), names.end());
          EXPECT_EQ(unique.size(), names.size());
          EXPECT_EQ(unique, names_of_a_run(config)) << tp << ' ' << pp << ' ' << ep << ' ' << etp;
          sparse += static_cast<std::int64_t>(names.size()) < tp * pp * ep ? 1 : 0;
        }
      }
    }
  }
  EXPECT_GT(sparse, 50);
}

TEST(LegacyGrid, RefusesWhatNamesCannotTellApart) {
  EXPECT_EQ(legacy_grid({1, 1, 1, 2, 2}).error().code, Code::kNotDivisible);
  EXPECT_EQ(legacy_grid({3, 1, 1, 1, 2}).error().code, Code::kNotDivisible);
}

}  // namespace
}  // namespace shardwright

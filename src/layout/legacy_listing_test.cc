// SPDX-License-Identifier: Apache-2.0
// Generated listings: each folder is what the ranks of a run leave, walked one by one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "layout/classify_legacy.h"
#include "layout/folder_groups.h"
#include "layout/legacy_run_fixture.h"
#include "layout/sample_choice.h"

namespace shardwright {
namespace {

bool has_finding(const Diagnosis& diagnosis, std::string_view code) {
  return std::ranges::any_of(diagnosis.findings, [&](const Finding& f) { return f.code == code; });
}

std::string told(const SimulatedRun& run, const Diagnosis& diagnosis) {
  std::string text = "tp " + std::to_string(run.tp) + " pp " + std::to_string(run.pp) + " vpp " +
                     std::to_string(run.vpp) + " ep " + std::to_string(run.ep) + " etp " +
                     std::to_string(run.etp) + (run.has_experts ? " moe" : " dense") +
                     (run.has_arguments ? " args" : " no args");
  text += "; " + diagnosis.reason.english;
  for (const Finding& finding : diagnosis.findings) {
    text += "\n" + finding.code + " " + finding.message.english;
  }
  return text;
}

Diagnosis diagnose_as_usual(SimulatedFolder& folder) {
  keep_samples(folder.evidence, choose_samples(group_folders(folder.evidence.folders).models, 48));
  return classify_legacy(folder.evidence).diagnosis;
}

// What follows from the run alone, whether or not all of it was written.
void expect_axes(const SimulatedRun& run, const Diagnosis& diagnosis) {
  std::vector<std::string> coordinates = {"tp"};
  if (run.pp > 1) coordinates.emplace_back("pp");
  if (run.ep > 1) coordinates.emplace_back("ep");
  EXPECT_EQ(diagnosis.coordinates, coordinates) << told(run, diagnosis);
  EXPECT_EQ(diagnosis.layout, run.ep > 1   ? LayoutClass::kExpert
                              : run.pp > 1 ? LayoutClass::kPipeline
                                           : LayoutClass::kTensor);
  EXPECT_EQ(diagnosis.disk_arity, static_cast<std::int64_t>(coordinates.size()));
  EXPECT_EQ(diagnosis.sizes.pipeline, run.pp) << told(run, diagnosis);
  EXPECT_EQ(diagnosis.sizes.virtual_pipeline, run.vpp);
  EXPECT_EQ(diagnosis.sizes.expert, run.ep) << told(run, diagnosis);
  EXPECT_NE(diagnosis.confidence, Confidence::kAmbiguous) << told(run, diagnosis);
  EXPECT_EQ(diagnosis.disk_pattern, diagnosis.expected_pattern);
  EXPECT_TRUE(diagnosis.unexpected.empty()) << told(run, diagnosis);
  EXPECT_EQ(has_finding(diagnosis, "L19"), run.ep > 1) << "no --ep was given";
}

void expect_whole(const SimulatedRun& run, const SimulatedFolder& folder,
                  const SimulatedFolder& asked, const Diagnosis& diagnosis) {
  expect_axes(run, diagnosis);
  EXPECT_EQ(diagnosis.sizes.tensor, run.tp) << told(run, diagnosis);
  if (run.has_arguments) {
    EXPECT_EQ(diagnosis.sizes.expert_tensor, run.has_experts ? run.etp : 1);
  } else if (diagnosis.sizes.expert_tensor) {
    EXPECT_EQ(*diagnosis.sizes.expert_tensor, run.has_experts ? run.etp : 1)
        << told(run, diagnosis);
  }
  EXPECT_EQ(diagnosis.complete, true) << told(run, diagnosis);
  EXPECT_FALSE(has_finding(diagnosis, "L07"));
  EXPECT_FALSE(has_finding(diagnosis, "L09")) << told(run, diagnosis);
  const bool knows_grid = run.has_arguments || diagnosis.sizes.expert_tensor;
  if (knows_grid) {
    const bool is_sparse = static_cast<std::int64_t>(asked.names.size()) < run.tp * run.pp * run.ep;
    EXPECT_EQ(has_finding(diagnosis, "L06"), is_sparse) << told(run, diagnosis);
    EXPECT_EQ(has_finding(diagnosis, "L31"), folder.names != asked.names) << told(run, diagnosis);
  }
}

struct Counts {
  int listings = 0;
  int sparse = 0;
  int incomplete = 0;
  int not_reloadable = 0;
};

void check_run(const SimulatedRun& run, Counts& counts) {
  const SimulatedFolder asked = simulate(run, SimulatedWriter::kEveryRank);
  for (const auto writer :
       {SimulatedWriter::kEveryRank, SimulatedWriter::kToday, SimulatedWriter::kBeforeCore19}) {
    SimulatedFolder folder = simulate(run, writer);
    const Diagnosis diagnosis = diagnose_as_usual(folder);
    ++counts.listings;
    if (folder.is_complete) {
      expect_whole(run, folder, asked, diagnosis);
      counts.not_reloadable += folder.names != asked.names ? 1 : 0;
      counts.sparse += has_finding(diagnosis, "L06") ? 1 : 0;
      continue;
    }
    ++counts.incomplete;
    if (!run.has_arguments) continue;  // fewer tensor ranks would leave the same names
    expect_axes(run, diagnosis);
    EXPECT_EQ(diagnosis.complete, false) << told(run, diagnosis);
    EXPECT_TRUE(has_finding(diagnosis, "L07")) << told(run, diagnosis);
    std::set<std::string> missing(diagnosis.missing.begin(), diagnosis.missing.end());
    std::set<std::string> lost;
    std::ranges::set_difference(folder.first_writers, folder.names,
                                std::inserter(lost, lost.end()));
    EXPECT_EQ(missing, lost) << told(run, diagnosis);
    EXPECT_TRUE(diagnosis.has_errors());
  }
}

TEST(LegacyListing, IsReadAsTheRanksWroteIt) {
  Counts counts;
  for (std::int64_t tp = 1; tp <= 8; ++tp) {
    for (std::int64_t etp = 1; etp <= tp; ++etp) {
      if (tp % etp != 0) continue;
      for (std::int64_t ep = 1; ep <= 8; ++ep) {
        for (const std::int64_t pp : {1, 3}) {
          for (const std::int64_t vpp : {1, 2}) {
            if (vpp > 1 && pp == 1) continue;
            for (const bool has_arguments : {true, false}) {
              check_run({tp, pp, vpp, ep, etp, true, has_arguments, 2}, counts);
            }
          }
        }
      }
    }
  }
  for (std::int64_t tp = 1; tp <= 8; ++tp) {
    for (std::int64_t pp = 1; pp <= 8; ++pp) {
      check_run({tp, pp, 1, 1, tp, false, true, 2}, counts);
      check_run({tp, pp, 2, 1, tp, false, false, 1}, counts);
    }
  }
  EXPECT_GT(counts.listings, 2000);
  EXPECT_GT(counts.sparse, 200);
  EXPECT_GT(counts.incomplete, 100);
  EXPECT_GT(counts.not_reloadable, 100);
}

// Megatron takes TP for ETP where it is not told, so an old writer left nothing of a dense model
// out.
TEST(LegacyListing, ATensorRankThatWasNotCopiedIsNoOldWriters) {
  for (const bool has_arguments : {true, false}) {
    SimulatedFolder folder =
        simulate({2, 1, 1, 1, 2, false, has_arguments}, SimulatedWriter::kToday);
    std::erase_if(folder.evidence.folders,
                  [](const RankFolder& f) { return f.name != "mp_rank_00"; });
    const Diagnosis diagnosis = diagnose_as_usual(folder);
    EXPECT_FALSE(has_finding(diagnosis, "L07"));
    EXPECT_EQ(has_finding(diagnosis, "L09"), has_arguments) << "else nothing tells of a second one";
  }
}

TEST(LegacyListing, EveryHoleIsFound) {
  int holes = 0;
  for (const SimulatedRun& run :
       {SimulatedRun{4, 1, 1, 1, 4}, SimulatedRun{2, 3, 1, 1, 2}, SimulatedRun{2, 2, 1, 4, 1, true},
        SimulatedRun{4, 1, 1, 2, 2, true}, SimulatedRun{1, 1, 1, 8, 1, true}}) {
    const SimulatedFolder whole = simulate(run, SimulatedWriter::kToday);
    for (const std::string& name : whole.names) {
      SimulatedFolder folder = whole;
      std::erase_if(folder.evidence.folders, [&](const RankFolder& f) { return f.name == name; });
      const Diagnosis diagnosis = diagnose_as_usual(folder);
      EXPECT_EQ(diagnosis.missing, std::vector<std::string>{name});
      EXPECT_EQ(diagnosis.sizes.tensor, run.tp);
      // A sparse or dense grid has each shard once only where both of its axes are needed.
      EXPECT_TRUE(has_finding(diagnosis, "L09") || has_finding(diagnosis, "L07") ||
                  has_finding(diagnosis, "L31"))
          << told(run, diagnosis) << " without " << name;
      ++holes;
    }
  }
  EXPECT_GT(holes, 20);
}

TEST(LegacyListing, ExpertSizesThatNamesCannotTellApartAreRefused) {
  for (std::int64_t tp = 1; tp <= 8; ++tp) {
    for (std::int64_t etp = 1; etp <= 8; ++etp) {
      if (tp % etp == 0) continue;
      SimulatedFolder folder = simulate({tp, 1, 1, 2, etp, true}, SimulatedWriter::kEveryRank);
      const Diagnosis diagnosis = diagnose_as_usual(folder);
      EXPECT_TRUE(has_finding(diagnosis, "L08")) << tp << ' ' << etp;
      EXPECT_EQ(diagnosis.complete, false);
    }
  }
}

// Two numbers in every content, with and without arguments, with and without the caller's word.
TEST(LegacyListing, TwoNumbersAreReadByContent) {
  int listings = 0;
  for (std::int64_t count = 2; count <= 8; ++count) {
    for (std::int64_t tp = 1; tp <= 4; tp *= 2) {
      for (const bool has_arguments : {true, false}) {
        for (const std::int64_t flag : {0, 1, 2}) {
          SimulatedFolder pipeline =
              simulate({tp, count, 1, 1, tp, false, has_arguments}, SimulatedWriter::kToday);
          SimulatedFolder expert =
              simulate({tp, 1, 1, count, tp, true, has_arguments}, SimulatedWriter::kToday);
          EXPECT_EQ(pipeline.names, expert.names);
          for (SimulatedFolder* folder : {&pipeline, &expert}) {
            if (flag == 1) folder->evidence.believed.pipeline = count;
            if (flag == 2) folder->evidence.believed.expert = count;
            const Diagnosis diagnosis = diagnose_as_usual(*folder);
            const bool is_expert = folder == &expert;
            EXPECT_EQ(diagnosis.coordinates[1], is_expert ? "ep" : "pp");
            EXPECT_EQ(has_finding(diagnosis, "L19"), is_expert && flag != 2);
            EXPECT_EQ(has_finding(diagnosis, "L02"), is_expert && flag == 2);
            EXPECT_EQ(has_finding(diagnosis, "L32"), !is_expert && flag == 2);
            EXPECT_EQ(has_finding(diagnosis, "L01"), !is_expert && flag != 0);
            EXPECT_EQ(has_finding(diagnosis, "L05"), is_expert && flag == 1);
            EXPECT_EQ(diagnosis.loader, is_expert ? Loader::kExpertAware : Loader::kNonExpert);
            ++listings;
          }
        }
      }
    }
  }
  EXPECT_GT(listings, 200);
}

}  // namespace
}  // namespace shardwright

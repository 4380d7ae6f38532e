// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "layout/legacy_evidence.h"

namespace shardwright {

/// A training run as a test describes it.
struct SimulatedRun {
  std::int64_t tp = 1;
  std::int64_t pp = 1;
  std::int64_t vpp = 1;
  std::int64_t ep = 1;
  std::int64_t etp = 1;
  bool has_experts = false;
  bool has_arguments = true;
  std::int64_t layers_per_stage = 2;
};

/// Which ranks write.
enum class SimulatedWriter { kEveryRank, kToday, kBeforeCore19 };

/// What the run leaves on disk. For tests: ranks are walked one by one with formulas of their own,
/// so that nothing here comes from the code under test.
struct SimulatedFolder {
  LegacyEvidence evidence;  ///< all folders, one sample for each
  std::set<std::string> names;
  std::set<std::string> first_writers;  ///< names that the kToday ranks write
  bool is_complete = true;
  std::set<std::int64_t> lost_tensor_ranks;
};

[[nodiscard]] SimulatedFolder simulate(const SimulatedRun& run, SimulatedWriter writer);

/// Keeps the samples of these folders only.
void keep_samples(LegacyEvidence& evidence, const std::vector<std::string>& folders);

/// A folder with one file in it.
[[nodiscard]] RankFolder rank_folder(std::string name, std::string file = "model_optim_rng.pt",
                                     std::uint64_t bytes = 1000);

/// What a rank of a run holds.
[[nodiscard]] RankSample rank_sample(const std::string& name, const SimulatedRun& run,
                                     std::int64_t stage);

}  // namespace shardwright

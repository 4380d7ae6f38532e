// SPDX-License-Identifier: Apache-2.0
#include "layout/legacy_coverage.h"

#include <algorithm>
#include <limits>
#include <tuple>

#include "layout/legacy_grid.h"

namespace shardwright {
namespace {

// The ranks of a pipeline stage that write. Today: those that are first in data parallelism, of the
// dense part or of the experts. From v0.11 to core 0.18 only the experts' were asked, so that with
// TP > ETP x EP dense shards were lost (#4678).
std::set<std::pair<std::int64_t, std::int64_t>> written_pairs(const ParallelConfig& config,
                                                              std::int64_t writers) {
  std::set<std::pair<std::int64_t, std::int64_t>> pairs;
  for (std::int64_t r = 0; r < writers; ++r) {
    pairs.emplace(r % config.tensor, r / config.expert_tensor % config.expert);
  }
  return pairs;
}

struct Shards {
  std::set<std::pair<std::int64_t, std::int64_t>> dense;                   // p, t
  std::set<std::tuple<std::int64_t, std::int64_t, std::int64_t>> experts;  // p, e, etp

  void add(const LegacyRank& rank) {
    dense.emplace(rank.pipeline, rank.tensor);
    experts.emplace(rank.pipeline, rank.expert, rank.expert_tensor);
  }
};

}  // namespace

Result<LegacyCoverage> legacy_coverage(const std::set<std::string>& names,
                                       const ParallelConfig& config, RankNaming naming,
                                       const EncoderStages& encoders) {
  const std::vector<LegacyRank> grid = SW_TRY(legacy_grid(config, encoders));
  const std::int64_t expert_ranks = config.expert_tensor * config.expert;
  const auto today = written_pairs(config, std::max(config.tensor, expert_ranks));
  const auto before = written_pairs(config, expert_ranks);
  LegacyCoverage coverage;
  coverage.asked = static_cast<std::size_t>(
      std::ranges::count(grid, config.pipeline - 1, &LegacyRank::pipeline));
  Shards needed;
  Shards held;
  std::set<std::string> known;
  std::vector<std::string> unwritten;
  bool has_all_of_old_writer = true;
  bool has_more_than_old_writer = false;
  for (const LegacyRank& rank : grid) {
    const std::string name = rank_folder_name(rank, config, naming);
    known.insert(name);
    needed.add(rank);
    const bool is_there = names.contains(name);
    if (is_there) held.add(rank);
    const bool is_written = today.contains({rank.tensor, rank.expert});
    if (is_written) ++coverage.written;
    if (is_written && !is_there) coverage.missing.push_back(rank);
    if (!is_written && !is_there) unwritten.push_back(name);
    const bool is_of_old = before.contains({rank.tensor, rank.expert});
    has_all_of_old_writer &= is_there || !is_of_old;
    has_more_than_old_writer |= is_there && !is_of_old;
  }
  coverage.is_complete = held.dense == needed.dense && held.experts == needed.experts;
  coverage.by_old_writer =
      !coverage.missing.empty() && has_all_of_old_writer && !has_more_than_old_writer;
  for (std::int64_t t = 0; t < config.tensor; ++t) {
    const auto holds = [&](const auto& shard) { return shard.second == t; };
    if (std::ranges::none_of(held.dense, holds)) coverage.lost_tensors.push_back(t);
  }
  std::ranges::set_difference(names, known, std::back_inserter(coverage.unexpected));
  if (coverage.is_complete) coverage.unwritten = std::move(unwritten);
  return coverage;
}

ExpertTensorFit fit_expert_tensor(const std::set<std::string>& names, ParallelConfig config,
                                  RankNaming naming, const EncoderStages& encoders) {
  ExpertTensorFit fit{{}, config.tensor};
  std::size_t fewest = std::numeric_limits<std::size_t>::max();
  for (std::int64_t size = 1; size <= config.tensor; ++size) {
    config.expert_tensor = size;
    if (config.tensor % size != 0 || !is_believable_grid(config)) continue;
    const auto coverage = legacy_coverage(names, config, naming, encoders);
    if (!coverage) continue;
    const bool fits = coverage->is_complete && coverage->unexpected.empty();
    if (fits) fit.fitting.push_back(size);
    const std::size_t wrong = fits ? 0 : 1 + coverage->missing.size() + coverage->unexpected.size();
    if (wrong > fewest) continue;
    fewest = wrong;
    fit.nearest = size;
  }
  return fit;
}

}  // namespace shardwright

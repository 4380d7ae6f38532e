// SPDX-License-Identifier: Apache-2.0
#include "layout/legacy_grid.h"

#include <numeric>
#include <set>
#include <utility>

#include "base/fail.h"

namespace shardwright {
namespace {

Result<std::vector<LegacyRank>> grid_of_equal_stages(const ParallelConfig& config) {
  const std::int64_t tp = config.tensor;
  const std::int64_t etp = config.expert_tensor;
  if (config.encoder_tensor > 0 && tp % config.encoder_tensor != 0) {
    return fail(Code::kNotDivisible, "--encoder-tp {} must divide --tp {}", config.encoder_tensor,
                tp);
  }
  if (config.expert == 1 && etp == tp) {
    std::vector<LegacyRank> ranks;
    for (std::int64_t p = 0; p < config.pipeline; ++p) {
      for (std::int64_t t = 0; t < tp; ++t) ranks.push_back({t, p, 0, t});
    }
    return ranks;
  }
  if (tp % etp != 0) {
    return fail(
        Code::kNotDivisible,
        "--etp {} must divide --tp {}: the names of mp_rank folders do not tell experts' tensor "
        "ranks apart, so their files would overwrite each other",
        etp, tp);
  }
  std::set<std::pair<std::int64_t, std::int64_t>> names;
  for (std::int64_t r = 0; r < std::lcm(tp, etp * config.expert); ++r) {
    names.emplace(r % tp, r / etp % config.expert);
  }
  std::vector<LegacyRank> ranks;
  for (std::int64_t p = 0; p < config.pipeline; ++p) {
    for (const auto& [t, e] : names) ranks.push_back({t, p, e, t % etp});
  }
  return ranks;
}

}  // namespace

Result<std::vector<LegacyRank>> legacy_grid(const ParallelConfig& config,
                                            const EncoderStages& encoders) {
  std::vector<LegacyRank> ranks = SW_TRY(grid_of_equal_stages(config));
  std::erase_if(ranks, [&](const LegacyRank& rank) { return encoders.lack(rank); });
  return ranks;
}

bool is_believable_grid(const ParallelConfig& config) {
  constexpr std::int64_t kMostFolders = 1 << 20;
  for (const std::int64_t size :
       {config.tensor, config.pipeline, config.expert, config.expert_tensor}) {
    if (size < 1 || size > kMostRanksOfAnAxis) return false;
  }
  // Each size is below 2^17, so that only the last product needs care.
  const std::int64_t stage = std::lcm(config.tensor, config.expert_tensor * config.expert);
  return stage <= kMostFolders && stage * config.pipeline <= kMostFolders;
}

}  // namespace shardwright

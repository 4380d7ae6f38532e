// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace shardwright {

/// A data-parallel rank among those that share out a model's parameters, and among those that share
/// out its experts'.
struct LayerWiseRank {
  std::size_t number = 0;
  std::size_t ranks = 1;
  std::size_t expert_number = 0;
  std::size_t expert_ranks = 1;
};

/// The parameters of an optimizer's groups, of which each has `elements`.
struct LayerWiseGroup {
  std::vector<std::size_t> parameters;
  bool is_expert = false;
};

/// Which parameters of each group `rank` trains, in the order in which its optimizer lists them:
/// Megatron's layer-wise optimizer deals out whole parameters, the smallest first, from the first
/// rank to the last and back. Source: LayerWiseDistributedOptimizer._shard_params_ping_pong
/// (shard_params up to 0.16) in megatron/core/optimizer/layer_wise_optimizer.py.
[[nodiscard]] std::vector<std::vector<std::size_t>> layer_wise_share(
    std::span<const LayerWiseGroup> groups, std::span<const std::int64_t> elements,
    const LayerWiseRank& rank);

}  // namespace shardwright

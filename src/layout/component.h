// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "shardwright/error.h"
#include "shardwright/parallel.h"

namespace shardwright {

/// One module of a MIMO model with ranks of its own: `[rank_offset, rank_offset + ranks())` of the
/// whole run. Source: megatron/bridge/models/megatron_mimo/megatron_mimo_config.py.
struct Component {
  std::string name;
  std::int64_t tensor = 1;
  std::int64_t context = 1;
  std::int64_t data = 1;
  std::int64_t pipeline = 1;
  std::int64_t expert = 1;
  std::int64_t expert_tensor = 1;
  std::int64_t rank_offset = 0;

  /// Expert sizes share out the same ranks and do not multiply them.
  [[nodiscard]] std::int64_t ranks() const { return tensor * context * data * pipeline; }
};

/// A rank's coordinates in its component's two grids.
struct RankPlace {
  std::int64_t tensor = 0;
  std::int64_t context = 0;
  std::int64_t data = 0;
  std::int64_t pipeline = 0;
  std::int64_t expert_tensor = 0;
  std::int64_t expert = 0;
  std::int64_t expert_data = 0;
};

/// Of the component's rank-th rank, counted from 0. Ranks count tensor first, then context, data
/// and pipeline; for experts expert-tensor, then expert, expert-data and pipeline. REQUIRES: a
/// component that solve_component_layout() made.
[[nodiscard]] RankPlace place_of_rank(const Component& component, std::int64_t rank);

/// `ranks 0-3`, or `rank 4`.
[[nodiscard]] std::string ranks_text(const Component& component);

}  // namespace shardwright

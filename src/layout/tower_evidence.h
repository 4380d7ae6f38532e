// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "layout/tower.h"
#include "shardwright/error.h"

namespace shardwright {

/// A tensor of a tower, and a number of ranks that follows from it.
struct TowerClue {
  std::string tensor;
  std::int64_t size = 1;
};

/// What a legacy checkpoint shows of how many tensor ranks share out one of its towers. Folders
/// count the language model's ranks: where a tower has E of them, rank t holds shard t mod E.
struct TowerEvidence {
  std::string tower;
  bool has_layers = false;                 ///< it is an encoder, not a projection
  std::vector<TowerClue> by_bytes;         ///< of some weights, the period of equal shards
  std::optional<TowerClue> by_patch;       ///< by a patch embedding that is cut
  std::optional<TowerClue> by_projection;  ///< as if its heads were as wide as its layers
};

/// What was settled about a tower that has not the language model's number of ranks.
struct SettledTower {
  std::string tower;
  std::int64_t size = 1;
  std::string reason;
};

/// `recorded` is what the run's arguments say of encoders; `tensor` is the language model's size.
/// What is told is believed where the tensors agree or show nothing; without a word the bytes
/// decide, and where all ranks hold alike constants, the shapes. Error: kLegacyLayout, naming the
/// tensor, where clues contradict one another (one tensor that is not as the others is damage, and
/// not a size) or what is told is no divisor of `tensor`.
[[nodiscard]] Result<std::vector<SettledTower>> settle_towers(
    const std::vector<TowerEvidence>& towers, std::optional<std::int64_t> recorded,
    std::int64_t tensor);

}  // namespace shardwright

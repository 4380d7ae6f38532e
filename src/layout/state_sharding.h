// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <vector>

namespace shardwright {

/// How a common state says that the distributed optimizer's states were saved; empty where it
/// doesn't.
struct StateSharding {
  std::string content;                  ///< content_metadata, by which Megatron looks for them
  std::vector<std::string> optimizers;  ///< param_state_sharding_type of each, where it has one
};

/// What of it the others contradict: a sentence; empty where they agree. `names`: of tensors and
/// objects that are stored. Only what a distributed optimizer says of itself is held against names:
/// others have states of tensors in any case.
[[nodiscard]] std::string contradicted_sharding(const StateSharding& told,
                                                std::span<const std::string> names);

}  // namespace shardwright

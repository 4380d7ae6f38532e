// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "shardwright/checkpoint.h"

namespace shardwright {

// What is read here and torch itself cannot load, or loads as something else (SW0321): sentences
// that begin with what they are about. Of checkpoints of torch.distributed.checkpoint only.

/// By the way `.metadata` says it. The metadata is read once more; where it can't be, nothing is
/// said: that was reported when it was opened.
[[nodiscard]] std::vector<std::string> metadata_obstacles(const Checkpoint& checkpoint);

/// Shards that torch 2.12 and 2.13 describe wrong. Only uneven ones can be, so only the heads of
/// their items are read, and of no more than some ten thousand: verify looks at all.
[[nodiscard]] std::vector<std::string> shard_obstacles(const Checkpoint& checkpoint);

/// Both.
[[nodiscard]] std::vector<std::string> torch_obstacles(const Checkpoint& checkpoint);

/// The whole sentence about one of them, with the way out.
[[nodiscard]] std::string unloadable_text(std::string_view obstacle);

}  // namespace shardwright

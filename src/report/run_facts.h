// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "shardwright/checkpoint.h"

namespace shardwright {

/// Names and values as text.
using Facts = std::vector<std::pair<std::string, std::string>>;

/// Parallel sizes that the run's arguments tell; those that are 1 or missing are left out.
[[nodiscard]] Facts layout_facts(const Checkpoint& checkpoint);
/// Sizes and kind of the model, from the run's arguments, else from its config.json.
[[nodiscard]] Facts model_facts(const Checkpoint& checkpoint);

}  // namespace shardwright

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "shardwright/plan.h"

namespace shardwright {

/// For each target tensor whether it is the one in front of it once more: of the same type, made of
/// the same source elements and cut into the same pieces, in other places. Whoever fills the first
/// fills all of them with what was read once.
[[nodiscard]] std::vector<bool> repeated_tensors(const Plan& plan);

}  // namespace shardwright

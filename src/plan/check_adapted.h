// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "shardwright/plan.h"

namespace shardwright {

/// Proves that each adapted source finds what is added to it: matrices of fitting shapes and types,
/// each one whole chunk, and a factor for each row where there are some. `is_multiplied` says which
/// source tensors are quantised. Error: kPlanInvalid; kDtypeUnsupported for values that float32
/// does not hold.
[[nodiscard]] Status check_adapted(const Plan& plan, const std::vector<bool>& is_multiplied);

}  // namespace shardwright

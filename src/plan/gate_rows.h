// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "model/interleaved_gates.h"
#include "plan/draft.h"
#include "shardwright/catalog.h"

namespace shardwright {

/// Makes of drafts that are what they would be without blocks drafts that read a source which has
/// gates as `from` says, and make a target which has them as `to` says: of weights, biases and
/// their optimizer states. What is alike in both, and an adapter, is left as it is. Error:
/// kNotDivisible where rows are no whole blocks.
[[nodiscard]] Status move_gates(const Catalog& source, const StoredGates& from,
                                const StoredGates& to, std::vector<DraftTensor>& tensors);

}  // namespace shardwright

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "plan/draft.h"
#include "shardwright/catalog.h"
#include "shardwright/error.h"
#include "shardwright/plan.h"

namespace shardwright {

/// What join_masters() changes.
struct MasterHalves {
  const Catalog& catalog;  ///< what the recipes read
  std::vector<DraftTensor>& tensors;
  std::vector<WeightedSource>& weighted;  ///< of the plan
  /// Adds a tensor of the catalog to it once more and gives its number.
  std::function<std::uint32_t(std::uint32_t)> repeat;
};

/// Master weights that are stored as what the weights lack of them (MasterForm::kRemainders) become
/// the float32 numbers that both make, as every run but one with the same optimizer asks for.
/// Whether there were any. Errors: kUsage for a remainder whose weight is left out;
/// kOptimizerMismatch for a tensor that would be made of such and of whole ones.
[[nodiscard]] Result<bool> join_masters(const MasterHalves& halves);

}  // namespace shardwright

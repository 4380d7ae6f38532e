// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "model/transform.h"

namespace shardwright {

/// How a Grouped transform, attention above all, lowers; one of the sides is empty and is filled
/// in. Errors: kShapeMismatch, kLimit, and those of SizeExpr::evaluate.
[[nodiscard]] Result<Lowered> lower_grouped(const Grouped& grouped, std::vector<Dims> hf,
                                            std::vector<Dims> megatron, const Scope& given);

/// The same with the sides exchanged: a piece reads the same in both directions.
[[nodiscard]] Result<Lowered> lower_dealt(const Grouped& grouped, std::vector<Dims> hf,
                                          std::vector<Dims> megatron, const Scope& scope);

}  // namespace shardwright

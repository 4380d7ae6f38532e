// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "shardwright/plan.h"

namespace shardwright {

/// The blocks of which scales a region of a target tensor is made, whole ones: as a box of scales.
/// REQUIRES: check_quantising() succeeded.
[[nodiscard]] Box blocks_of(const Quantising& quantising, const Box& region);

/// What of the matrix has these scales.
[[nodiscard]] Box matrix_of_blocks(const Quantising& quantising, const Box& blocks);

/// What of the recipe's views a region of its target tensor is made of: the region itself, or whole
/// blocks of the matrix.
[[nodiscard]] Box made_region(const TensorRecipe& recipe, const Box& region);

/// How many neighbours along `axis` of a target tensor are made at once. Ranges that begin and end
/// at multiples cost least, others are right too.
[[nodiscard]] std::int64_t rows_at_once(const TensorRecipe& recipe, int axis);

/// Whether the target tensor has the shape and the type that this part of the matrix has. Error:
/// kPlanInvalid.
[[nodiscard]] Status check_quantising(const Quantising& quantising, const TensorDesc& target);

}  // namespace shardwright

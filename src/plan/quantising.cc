// SPDX-License-Identifier: Apache-2.0
#include "plan/quantising.h"

#include <algorithm>

#include "base/checked.h"
#include "base/fail.h"

namespace shardwright {

Dims scale_shape(const Quantising& quantising) {
  Dims shape = quantising.shape;
  std::int64_t& rows = shape[quantising.row_axis()];
  std::int64_t& columns = shape[quantising.column_axis()];
  rows = ceil_div(rows, quantising.block_rows);
  columns = ceil_div(columns, quantising.block_columns);
  return shape;
}

Dims value_shape(const Quantising& quantising) {
  if (quantising.scheme == Quantising::Scheme::kFp8) return quantising.shape;
  Dims shape = scale_shape(quantising);
  shape.push_back(quantising.block_columns / 2);
  return shape;
}

Box blocks_of(const Quantising& quantising, const Box& region) {
  if (quantising.part == Quantising::Part::kScales) return region;
  Box blocks{Dims(), Dims()};
  for (int axis = 0; axis < quantising.shape.size(); ++axis) {
    std::int64_t block = 1;
    if (quantising.scheme == Quantising::Scheme::kFp8 && axis == quantising.row_axis()) {
      block = quantising.block_rows;
    }
    if (quantising.scheme == Quantising::Scheme::kFp8 && axis == quantising.column_axis()) {
      block = quantising.block_columns;
    }
    const std::int64_t first = region.origin[axis] / block;
    blocks.origin.push_back(first);
    blocks.shape.push_back(ceil_div(region.end(axis), block) - first);
  }
  return blocks;
}

Box matrix_of_blocks(const Quantising& quantising, const Box& blocks) {
  Box matrix = blocks;
  const auto widen = [&](int axis, std::int64_t block) {
    matrix.origin[axis] *= block;
    const std::int64_t end = std::min(blocks.end(axis) * block, quantising.shape[axis]);
    matrix.shape[axis] = end - matrix.origin[axis];
  };
  widen(quantising.row_axis(), quantising.block_rows);
  widen(quantising.column_axis(), quantising.block_columns);
  return matrix;
}

Box made_region(const TensorRecipe& recipe, const Box& region) {
  if (recipe.quantising == nullptr) return region;
  return matrix_of_blocks(*recipe.quantising, blocks_of(*recipe.quantising, region));
}

std::int64_t rows_at_once(const TensorRecipe& recipe, int axis) {
  const Quantising* quantising = recipe.quantising.get();
  const bool are_rows_of_blocks =
      quantising != nullptr && quantising->part == Quantising::Part::kValues &&
      quantising->scheme == Quantising::Scheme::kFp8 && axis == quantising->row_axis();
  return are_rows_of_blocks ? quantising->block_rows : 1;
}

Status check_quantising(const Quantising& quantising, const TensorDesc& target) {
  const auto invalid = [&](std::string_view why) {
    return fail(Code::kPlanInvalid, "tensor {}: {} {} {}", target.name, torch_name(target.dtype),
                to_string(target.shape), why);
  };
  if (quantising.shape.size() < 2 || quantising.block_rows < 1 || quantising.block_columns < 1) {
    return invalid("is made of no matrix");
  }
  const bool is_fp4 = quantising.scheme == Quantising::Scheme::kMxfp4;
  if (is_fp4 && (quantising.block_rows != 1 || quantising.block_columns % 2 != 0 ||
                 quantising.shape[quantising.column_axis()] % quantising.block_columns != 0 ||
                 !quantising.has_exponents || quantising.shape.size() == kMaxAxes)) {
    return invalid("has no groups of pairs");
  }
  const bool are_scales = quantising.part == Quantising::Part::kScales;
  if (target.shape != (are_scales ? scale_shape(quantising) : value_shape(quantising))) {
    return invalid("has not the shape of what it is made of");
  }
  bool fits = target.dtype == (is_fp4 ? DType::kU8 : DType::kF8E4M3);
  if (are_scales) {
    fits = quantising.has_exponents ? target.dtype == DType::kU8 || target.dtype == DType::kF8E8M0
                                    : false;
    fits = fits || (!is_fp4 && target.dtype == DType::kF32);
  }
  return fits ? Status() : invalid("has not the type of what it is made of");
}

}  // namespace shardwright

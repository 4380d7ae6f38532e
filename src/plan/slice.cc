// SPDX-License-Identifier: Apache-2.0
#include "plan/slice.h"

#include <algorithm>

namespace shardwright {
namespace {

Dims without_first(const Dims& dims) {
  Dims rest;
  for (int axis = 1; axis < dims.size(); ++axis) rest.push_back(dims[axis]);
  return rest;
}

}  // namespace

DraftTensor slice_rows(const DraftTensor& tensor, std::int64_t begin, std::int64_t rows) {
  DraftTensor slice = tensor;
  slice.desc.shape[0] = rows;
  slice.recipe.views = {};
  slice.true_rows.reset();
  for (const TensorView& whole : tensor.recipe.views) {
    const std::int64_t first = std::max(whole.box.origin[0], begin);
    const std::int64_t end = std::min(whole.box.end(0), begin + rows);
    if (first >= end) continue;
    TensorView view = whole;
    if (view.axis[0] >= 0) {
      const std::int64_t skipped = first - whole.box.origin[0];
      view.source_origin[static_cast<int>(view.axis[0])] += skipped * view.step[0];
    }
    view.box.origin[0] = first - begin;
    view.box.shape[0] = end - first;
    slice.recipe.views.push_back(view);
  }
  return slice;
}

DraftTensor take_row(const DraftTensor& tensor, std::int64_t index) {
  DraftTensor row = slice_rows(tensor, index, 1);
  row.desc.shape = without_first(row.desc.shape);
  for (std::size_t i = 0; i < row.recipe.views.size(); ++i) {
    TensorView view = row.recipe.views[i];
    view.box.origin = without_first(view.box.origin);
    view.box.shape = without_first(view.box.shape);
    view.axis = without_first(view.axis);
    view.step = without_first(view.step);
    row.recipe.views.set(i, view);
  }
  return row;
}

void append_rows(DraftTensor& whole, const DraftTensor& part) {
  const std::int64_t before = whole.desc.shape[0];
  for (std::size_t i = 0; i < part.recipe.views.size(); ++i) {
    TensorView view = part.recipe.views[i];
    view.box.origin[0] += before;
    whole.recipe.views.push_back(view);
  }
  whole.desc.shape[0] += part.desc.shape[0];
  whole.true_rows.reset();
}

}  // namespace shardwright

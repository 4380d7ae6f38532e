// SPDX-License-Identifier: Apache-2.0
#include "plan/repeated_tensors.h"

#include <algorithm>

namespace shardwright {
namespace {

bool is_same(const TensorView& a, const TensorView& b) {
  return a.source == b.source && a.box == b.box && a.source_origin == b.source_origin &&
         a.axis == b.axis && a.step == b.step;
}

bool is_same(const TensorRecipe& a, const TensorRecipe& b) {
  // The parts of a matrix that is stored as several are made of the same and are not the same.
  if (a.quantising != nullptr || b.quantising != nullptr) return false;
  if (a.fill != b.fill || a.add != b.add || a.views.size() != b.views.size()) return false;
  return std::equal(a.views.begin(), a.views.end(), b.views.begin(),
                    [](const TensorView& x, const TensorView& y) { return is_same(x, y); });
}

bool has_same_pieces(const StoredTensor& a, const StoredTensor& b) {
  if (a.desc.dtype != b.desc.dtype || a.desc.shape != b.desc.shape ||
      a.chunks.size() != b.chunks.size()) {
    return false;
  }
  for (std::size_t i = 0; i < a.chunks.size(); ++i) {
    if (a.chunks.box(i) != b.chunks.box(i)) return false;
  }
  return true;
}

}  // namespace

std::vector<bool> repeated_tensors(const Plan& plan) {
  std::vector<bool> repeats(plan.tensors.size(), false);
  for (std::size_t i = 1; i < plan.tensors.size(); ++i) {
    repeats[i] = is_same(plan.tensors[i - 1], plan.tensors[i]) &&
                 has_same_pieces(plan.target.tensors[i - 1], plan.target.tensors[i]);
  }
  return repeats;
}

}  // namespace shardwright

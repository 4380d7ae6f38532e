// SPDX-License-Identifier: Apache-2.0
#include "plan/piece_update.h"

namespace shardwright {
namespace {

int target_axis(const TensorView& view, int source_axis) {
  for (int axis = 0; axis < view.axis.size(); ++axis) {
    if (view.axis[axis] == source_axis) return axis;
  }
  return -1;
}

// In elements, along a factor's axis.
std::int64_t stride_of(const StoredTensor& stored, int axis) {
  const Dims strides = stored.chunks[0].strides;
  return strides.empty() ? row_major_strides(stored.desc.shape)[axis] : strides[axis];
}

// The factor whose axis `index_axis` belongs to the values' axis `source_axis`. A vector has no
// rank.
PieceFactor factor_of(const StoredTensor& stored, const AdaptedSource& adapted,
                      const TensorView& view, const Box& first, int source_axis, int index_axis,
                      std::optional<int> rank_axis) {
  const std::int64_t bytes = bytes_of(stored.desc.dtype);
  const std::int64_t index_stride = stride_of(stored, index_axis) * bytes;
  PieceFactor factor;
  factor.file = stored.chunks.file(0);
  factor.dtype = stored.desc.dtype;
  std::int64_t offset = first.origin[source_axis] * index_stride;
  factor.axis = target_axis(view, source_axis);
  factor.stride = factor.axis < 0 ? 0 : view.step[factor.axis] * index_stride;
  factor.rank_stride = rank_axis ? stride_of(stored, *rank_axis) * bytes : bytes;
  if (adapted.each_axis) {
    const std::int64_t each_stride = stride_of(stored, 0) * bytes;
    const int axis = target_axis(view, *adapted.each_axis);
    offset += first.origin[*adapted.each_axis] * each_stride;
    factor.each_stride = axis < 0 ? 0 : view.step[axis] * each_stride;
  }
  factor.offset = stored.chunks.range(0).offset + static_cast<std::uint64_t>(offset);
  return factor;
}

}  // namespace

PieceUpdate update_of(const AdaptedSource& adapted, const Catalog& source, const TensorView& view,
                      const Box& first) {
  PieceUpdate update;
  update.scale = adapted.scale;
  const StoredTensor& out = source.tensors[adapted.out];
  const int front = adapted.each_axis ? 1 : 0;
  if (adapted.each_axis) update.each_axis = target_axis(view, *adapted.each_axis);
  const std::optional<int> rank_axis = adapted.in ? std::optional(front + 1) : std::nullopt;
  if (rank_axis) update.rank = out.desc.shape[*rank_axis];
  update.out = factor_of(out, adapted, view, first, adapted.out_axis, front, rank_axis);
  if (adapted.in) {
    const StoredTensor& in = source.tensors[*adapted.in];
    update.in = factor_of(in, adapted, view, first, adapted.in_axis, front + 1, front);
  }
  if (adapted.factors != nullptr) {
    update.factors = adapted.factors->data() + first.origin[adapted.out_axis];
    update.factor_step = update.out.axis < 0 ? 0 : view.step[update.out.axis];
  }
  return update;
}

}  // namespace shardwright

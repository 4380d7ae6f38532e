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

// `index_stride` and `rank_stride` count elements of the factor.
PieceFactor factor_of(const StoredTensor& stored, const TensorView& view, int source_axis,
                      std::int64_t origin, std::int64_t index_stride, std::int64_t rank_stride) {
  const std::int64_t bytes = bytes_of(stored.desc.dtype);
  PieceFactor factor;
  factor.file = stored.chunks.file(0);
  factor.dtype = stored.desc.dtype;
  factor.offset =
      stored.chunks.range(0).offset + static_cast<std::uint64_t>(origin * index_stride * bytes);
  factor.axis = target_axis(view, source_axis);
  factor.stride = factor.axis < 0 ? 0 : view.step[factor.axis] * index_stride * bytes;
  factor.rank_stride = rank_stride * bytes;
  return factor;
}

// In elements, along a factor's axis.
std::int64_t stride_of(const StoredTensor& stored, int axis) {
  const Dims strides = stored.chunks[0].strides;
  return strides.empty() ? row_major_strides(stored.desc.shape)[axis] : strides[axis];
}

}  // namespace

PieceUpdate update_of(const AdaptedSource& adapted, const Catalog& source, const TensorView& view,
                      const Box& first) {
  PieceUpdate update;
  update.scale = adapted.scale;
  const StoredTensor& out = source.tensors[adapted.out];
  const std::int64_t row = first.origin[adapted.out_axis];
  const bool is_matrix = out.desc.shape.size() == 2;
  update.rank = is_matrix ? out.desc.shape[1] : 1;
  update.out = factor_of(out, view, adapted.out_axis, row, stride_of(out, 0),
                         is_matrix ? stride_of(out, 1) : 1);
  if (adapted.in) {
    const StoredTensor& in = source.tensors[*adapted.in];
    update.in = factor_of(in, view, adapted.in_axis, first.origin[adapted.in_axis],
                          stride_of(in, 1), stride_of(in, 0));
  }
  if (adapted.factors != nullptr) {
    update.factors = adapted.factors->data() + row;
    update.factor_step = update.out.axis < 0 ? 0 : view.step[update.out.axis];
  }
  return update;
}

}  // namespace shardwright

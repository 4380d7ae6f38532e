// SPDX-License-Identifier: Apache-2.0
#include "plan/lower.h"

#include <algorithm>

#include "base/checked.h"
#include "tensor/dequantise.h"

namespace shardwright {
namespace {

// The part of the source tensor that `region` of a view reads.
Box source_box(const TensorView& view, const Box& region, int source_axes) {
  Box box{view.source_origin, Dims::filled(source_axes, 1)};
  for (int axis = 0; axis < region.axes(); ++axis) {
    const std::int64_t source_axis = view.axis[axis];
    if (source_axis < 0) continue;
    const int s = static_cast<int>(source_axis);
    const std::int64_t moved = region.origin[axis] - view.box.origin[axis];
    box.origin[s] += moved * view.step[axis];
    box.shape[s] = (region.shape[axis] - 1) * view.step[axis] + 1;
  }
  return box;
}

// Shrinks `region` to the elements that `chunk` holds; false when stepping skips all of them.
bool clip_to_chunk(const TensorView& view, const Box& source, const Box& chunk, Box& region) {
  for (int axis = 0; axis < region.axes(); ++axis) {
    if (view.axis[axis] < 0) continue;
    const int s = static_cast<int>(view.axis[axis]);
    const std::int64_t step = view.step[axis];
    const std::int64_t before = std::max<std::int64_t>(0, chunk.origin[s] - source.origin[s]);
    const std::int64_t first = ceil_div(before, step);
    const std::int64_t room = chunk.end(s) - 1 - source.origin[s];
    const std::int64_t last = std::min(region.shape[axis] - 1, room / step);
    if (first > last) return false;
    region.origin[axis] += first;
    region.shape[axis] = last - first + 1;
  }
  return true;
}

// The scales of the piece whose first element lies at `first.origin` of the source.
PieceScales scales_of(const QuantisedSource& quantised, const StoredTensor& scales,
                      const TensorView& view, const Box& first) {
  const std::int64_t bytes = bytes_of(scales.desc.dtype);
  PieceScales result;
  result.file = scales.chunks.file(0);
  result.offset = scales.chunks.range(0).offset;
  result.dtype = scales.desc.dtype;
  Dims fixed = first.origin;  // the coordinates that no target axis changes
  for (int axis = 0; axis < view.box.axes(); ++axis) {
    const int s = static_cast<int>(view.axis[axis]);
    result.first.push_back(s < 0 ? 0 : first.origin[s]);
    result.step.push_back(s < 0 ? 0 : view.step[axis]);
    result.block.push_back(s < 0 ? 1 : quantised.block[s]);
    result.stride.push_back(s < 0 ? 0 : quantised.stride[s] * bytes);
    if (s >= 0) fixed[s] = 0;
  }
  for (int s = 0; s < fixed.size(); ++s) {
    const std::int64_t scale = fixed[s] / quantised.block[s] * quantised.stride[s];
    result.offset += static_cast<std::uint64_t>(scale * bytes);
  }
  return result;
}

}  // namespace

Lowering::Lowering(const Plan& plan)
    : plan_(&plan),
      quantised_(plan.source.tensors.size(), nullptr),
      indexes_(plan.source.tensors.size()) {
  views_.reserve(plan.tensors.size());
  for (const QuantisedSource& quantised : plan.quantised) {
    quantised_[quantised.values] = &quantised;
  }
  for (std::size_t target = 0; target < plan.tensors.size(); ++target) {
    const ViewList& views = plan.tensors[target].views;
    views_.emplace_back(views, plan.target.tensors[target].desc.shape.size());
    for (const TensorView& view : views) {
      if (!indexes_[view.source]) {
        const ChunkList& chunks = plan.source.tensors[view.source].chunks;
        indexes_[view.source] = std::make_unique<ChunkIndex>(chunks);
      }
    }
  }
}

void Lowering::lower(std::size_t target, const Box& region,
                     std::vector<SourcePiece>& pieces) const {
  const ViewList& views = plan_->tensors[target].views;
  std::vector<std::uint32_t> found;
  views_[target].find(region, found);
  for (const std::uint32_t index : found) lower_view(views[index], region, pieces);
}

void Lowering::lower_view(const TensorView& view, const Box& region,
                          std::vector<SourcePiece>& pieces) const {
  const std::optional<Box> wanted = intersect(view.box, region);
  if (!wanted) return;
  const StoredTensor& source = plan_->source.tensors[view.source];
  const QuantisedSource* quantised = quantised_[view.source];
  const int per_byte = quantised == nullptr ? 1 : values_per_byte(source.desc.dtype);
  const int element_size = per_byte > 1 ? 1 : bytes_of(source.desc.dtype);  // bytes, or values
  const Box needed = source_box(view, *wanted, source.desc.shape.size());
  std::vector<std::uint32_t> found;
  indexes_[view.source]->find(needed, found);
  for (std::size_t i = 0; i < found.size(); ++i) {
    const Chunk chunk = source.chunks[found[i]];
    // The index lists replicas (identical boxes) next to each other; one of them is enough.
    if (i > 0 && source.chunks.box(found[i - 1]) == chunk.box) continue;
    SourcePiece piece;
    piece.box = *wanted;
    piece.file = chunk.file;
    piece.offset = chunk.range.offset * static_cast<std::uint64_t>(per_byte);
    piece.strides = Dims::filled(wanted->axes(), 0);
    piece.dtype = source.desc.dtype;
    piece.per_byte = per_byte;
    if (!clip_to_chunk(view, needed, chunk.box, piece.box)) continue;
    const Dims strides = chunk.strides.empty() ? row_major_strides(chunk.box.shape) : chunk.strides;
    const Box first = source_box(view, piece.box, source.desc.shape.size());
    std::int64_t elements = 0;
    for (int s = 0; s < first.axes(); ++s) {
      elements += (first.origin[s] - chunk.box.origin[s]) * strides[s];
    }
    piece.offset += static_cast<std::uint64_t>(elements * element_size);
    for (int axis = 0; axis < piece.box.axes(); ++axis) {
      if (view.axis[axis] < 0) continue;
      piece.strides[axis] =
          strides[static_cast<int>(view.axis[axis])] * view.step[axis] * element_size;
    }
    if (quantised != nullptr) {
      const StoredTensor& scales = plan_->source.tensors[quantised->scales];
      piece.scales = scales_of(*quantised, scales, view, first);
    }
    pieces.push_back(piece);
  }
}

}  // namespace shardwright

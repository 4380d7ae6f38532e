// SPDX-License-Identifier: Apache-2.0
#include "plan/lower.h"

#include <algorithm>

#include "base/checked.h"
#include "plan/quantised.h"
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

// Which elements of the quantised tensor the piece is whose first one lies at `first.origin`.
QuantisedPiece quantised_piece(const QuantisedSource& quantised, const Catalog& catalog,
                               const TensorView& view, const Box& first) {
  QuantisedPiece result{&quantised, &catalog, first.origin, {}, {}};
  for (int axis = 0; axis < view.box.axes(); ++axis) {
    result.axis.push_back(view.axis[axis]);
    result.step.push_back(view.axis[axis] < 0 ? 0 : view.step[axis]);
  }
  return result;
}

bool names(const Dims& axes, int source_axis) {
  return std::ranges::find(axes, source_axis) != axes.end();
}

// Values from the chunk's first one to the word, along the axis that words lie along, or to the
// element itself where no target axis steps through the words.
std::int64_t value_in_words(const WordPacking& words, int per_word, std::int64_t coordinate,
                            std::int64_t stride, bool is_named) {
  const std::int64_t slot = is_named ? 0 : slot_of(words, per_word, coordinate);
  return coordinate / per_word * stride + slot;
}

}  // namespace

Lowering::Lowering(const Plan& plan)
    : plan_(&plan),
      quantised_(plan.source.tensors.size(), nullptr),
      adapted_(plan.source.tensors.size(), nullptr),
      weighted_(plan.source.tensors.size(), nullptr),
      indexes_(plan.source.tensors.size()) {
  views_.reserve(plan.tensors.size());
  for (const QuantisedSource& quantised : plan.quantised) {
    quantised_[quantised.values] = &quantised;
  }
  for (const AdaptedSource& adapted : plan.adapted) adapted_[adapted.values] = &adapted;
  for (const WeightedSource& weighted : plan.weighted) weighted_[weighted.values] = &weighted;
  for (std::size_t target = 0; target < plan.tensors.size(); ++target) {
    const ViewList& views = plan.tensors[target].views;
    views_.emplace_back(views,
                        made_shape(plan.tensors[target], plan.target.tensors[target].desc).size());
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
  int per_byte = 1;
  if (quantised != nullptr) {
    per_byte = quantised->bits != 0 ? 8 / quantised->bits : values_per_byte(source.desc.dtype);
  }
  const int words_axis = quantised != nullptr ? quantised->words.axis : -1;
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
      const std::int64_t coordinate = first.origin[s] - chunk.box.origin[s];
      elements += s == words_axis ? value_in_words(quantised->words, values_per_word(*quantised),
                                                   coordinate, strides[s], names(view.axis, s))
                                  : coordinate * strides[s];
    }
    piece.offset += static_cast<std::uint64_t>(elements * element_size);
    for (int axis = 0; axis < piece.box.axes(); ++axis) {
      if (view.axis[axis] < 0) continue;
      const int s = static_cast<int>(view.axis[axis]);
      const std::int64_t step = s == words_axis ? 1 : view.step[axis];
      piece.strides[axis] = strides[s] * step * element_size;
    }
    if (quantised != nullptr) {
      piece.quantised = quantised_piece(*quantised, plan_->source, view, first);
    }
    if (const AdaptedSource* adapted = adapted_[view.source]; adapted != nullptr) {
      piece.update = update_of(*adapted, plan_->source, view, first);
    }
    piece.weighted = weighted_[view.source];
    pieces.push_back(piece);
  }
}

}  // namespace shardwright

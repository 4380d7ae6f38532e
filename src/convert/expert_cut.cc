// SPDX-License-Identifier: Apache-2.0
#include "convert/expert_cut.h"

#include <algorithm>
#include <optional>

#include "layout/layer_name.h"

namespace shardwright {

Dims with_axis(const Dims& dims, int at, std::int64_t value) {
  Dims result;
  for (int i = 0; i <= dims.size(); ++i) {
    if (i == at) result.push_back(value);
    if (i < dims.size()) result.push_back(dims[i]);
  }
  return result;
}

int layer_axes(std::string_view name) {
  const std::optional<LayerName> layer = split_layer_name(name);
  return layer && !layer->index ? 1 : 0;
}

void add_expert_views(const ExpertCut& cut, const Dims& dense, const ExpertPlace& place,
                      const TensorView& view, ViewList& views) {
  const std::int64_t parts = cut.axis < 0 ? 1 : cut.parts;
  for (std::int64_t part = 0; part < parts; ++part) {
    TensorView piece = view;
    if (cut.axis >= 0) {
      const std::int64_t width = dense[cut.axis] / parts;
      const std::int64_t height = width / place.granularity;
      const std::int64_t from = part * width + place.expert % place.granularity * height;
      const std::int64_t begin = std::max(view.box.origin[cut.axis], from);
      const std::int64_t end = std::min(view.box.end(cut.axis), from + height);
      if (begin >= end) continue;
      const std::int64_t skipped = begin - view.box.origin[cut.axis];
      const std::int64_t source_axis = view.axis[cut.axis];
      if (source_axis >= 0) {
        piece.source_origin[static_cast<int>(source_axis)] += skipped * view.step[cut.axis];
      }
      piece.box.origin[cut.axis] = begin - from + part * height;
      piece.box.shape[cut.axis] = end - begin;
    }
    piece.box.origin = with_axis(piece.box.origin, place.axis, place.expert);
    piece.box.shape = with_axis(piece.box.shape, place.axis, 1);
    piece.axis = with_axis(piece.axis, place.axis, -1);
    piece.step = with_axis(piece.step, place.axis, 1);
    views.push_back(piece);
  }
}

}  // namespace shardwright

// SPDX-License-Identifier: Apache-2.0
#include "format/tensor_pieces.h"

#include <cstddef>

#include "base/fail.h"
#include "base/translated.h"
#include "layout/layer_name.h"
#include "tensor/chunk_part.h"

namespace shardwright {

bool TensorPieces::add(std::optional<std::int64_t> expert, GateHalf half,
                       const StoredTensor& piece) {
  has_experts_ |= expert.has_value();
  has_halves_ |= half != GateHalf::kWhole;
  return by_place_.emplace(std::pair(expert.value_or(0), half), &piece).second;
}

Status TensorPieces::check_count(const std::string& name) const {
  const std::size_t halves = has_halves_ ? 2 : 1;
  const auto last = static_cast<std::size_t>(by_place_.rbegin()->first.first);
  if (last >= by_place_.size() || by_place_.size() != (last + 1) * halves) {
    return fail(Code::kUnmatchedSource, "tensor {}: found {} of its pieces, expected {}{}", name,
                by_place_.size(), has_halves_ ? translated("_w and _v") : translated("one"),
                last == 0 ? "" : translated(" of each expert from 0 to {}", last));
  }
  return {};
}

Status TensorPieces::check(const std::string& name) const {
  SW_TRY(check_count(name));
  const TensorDesc& one = first().desc;
  for (const auto& [place, tensor] : by_place_) {
    const bool is_half = place.second != GateHalf::kWhole;
    if (is_half == has_halves_ && tensor->desc.dtype == one.dtype &&
        tensor->desc.shape == one.shape) {
      continue;
    }
    return fail(Code::kUnmatchedSource,
                "tensor {}: found {} {}, expected {} {} as its other pieces", tensor->desc.name,
                torch_name(tensor->desc.dtype), to_string(tensor->desc.shape),
                torch_name(one.dtype), to_string(one.shape));
  }
  // Those of a stack of layers would be put together as if they were more layers.
  const std::optional<LayerName> layer = split_layer_name(name);
  if ((has_halves_ || has_experts_) && layer && !layer->index) {
    return fail(Code::kUnmatchedSource,
                "tensor {}: found pieces that have all layers in one, expected those of each layer "
                "under its own number",
                name);
  }
  const int lead = has_experts_ ? 1 : 0;
  if (one.shape.size() + lead > kMaxAxes || (has_halves_ && one.shape.empty())) {
    return fail(Code::kUnmatchedSource, "tensor {}: found shape {}, expected rows", name,
                to_string(one.shape));
  }
  return {};
}

StoredTensor TensorPieces::put_together(std::string name) const {
  const StoredTensor& one = first();
  const TensorDesc& part = one.desc;
  StoredTensor whole{{std::move(name), part.dtype, part.shape}, ChunkList(), one.encoding};
  if (has_halves_) whole.desc.shape[0] *= 2;
  if (has_experts_) {
    const std::int64_t experts = by_place_.rbegin()->first.first + 1;
    whole.desc.shape = with_first(whole.desc.shape, experts);
  }
  whole.chunks = ChunkList(whole.desc.shape.size());
  for (const auto& [place, tensor] : by_place_) {
    for (std::size_t i = 0; i < tensor->chunks.size(); ++i) {
      Chunk chunk = tensor->chunks[i];
      if (place.second == GateHalf::kValue) chunk.box.origin[0] += part.shape[0];
      // What an item's own shape is held against once it is found.
      if (has_experts_ && one.encoding != Encoding::kRaw) {
        chunk.strides = row_major_strides(chunk.box.shape);
      }
      if (has_experts_) chunk = lifted(chunk, place.first);
      whole.chunks.push_back(chunk);
    }
  }
  return whole;
}

}  // namespace shardwright

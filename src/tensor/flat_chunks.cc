// SPDX-License-Identifier: Apache-2.0
#include "tensor/flat_chunks.h"

#include <algorithm>

namespace shardwright {
namespace {

class Splitting {
 public:
  Splitting(const Dims& shape, std::vector<FlatBox>& boxes) : shape_(shape), boxes_(boxes) {}

  // Elements [from, to) of what lies under the leading indices `lead`. `first` counts from the
  // run's begin.
  void split(const Dims& lead, std::int64_t from, std::int64_t to, std::int64_t first) {
    if (from >= to) return;
    const int axis = lead.size();
    std::int64_t inner = 1;
    for (int a = axis + 1; a < shape_.size(); ++a) inner *= shape_[a];
    const std::int64_t head = std::min(to, (from + inner - 1) / inner * inner);
    if (head > from) {
      descend(lead, from, head, inner, first);
      first += head - from;
      from = head;
    }
    const std::int64_t tail = to / inner * inner;
    if (tail > from) {
      append(lead, from / inner, tail / inner, first);
      first += tail - from;
      from = tail;
    }
    if (to > from) descend(lead, from, to, inner, first);
  }

  // All of it: a tensor without axes.
  void append(const Dims& lead, std::int64_t begin, std::int64_t end, std::int64_t first) {
    Box box{lead, Dims::filled(lead.size(), 1)};
    for (int a = lead.size(); a < shape_.size(); ++a) {
      const bool is_cut = a == lead.size();
      box.origin.push_back(is_cut ? begin : 0);
      box.shape.push_back(is_cut ? end - begin : shape_[a]);
    }
    boxes_.push_back({box, first});
  }

 private:
  void descend(const Dims& lead, std::int64_t from, std::int64_t to, std::int64_t inner,
               std::int64_t first) {
    Dims deeper = lead;
    deeper.push_back(from / inner);
    const std::int64_t begin = from / inner * inner;
    split(deeper, from - begin, to - begin, first);
  }

  const Dims& shape_;
  std::vector<FlatBox>& boxes_;
};

}  // namespace

std::vector<FlatBox> split_flat_range(const Dims& shape, std::int64_t from, std::int64_t to) {
  std::vector<FlatBox> boxes;
  Splitting splitting(shape, boxes);
  if (shape.empty()) {
    if (from < to) splitting.append({}, 0, 0, 0);
  } else {
    splitting.split({}, from, to, 0);
  }
  return boxes;
}

void append_flat_piece(const Box& box, const FlatPiece& piece, int element_bytes,
                       ChunkList& chunks) {
  for (const FlatBox& part : split_flat_range(box.shape, piece.from, piece.to)) {
    Chunk chunk{part.box, piece.file, {}, {}};
    for (int axis = 0; axis < box.axes(); ++axis) chunk.box.origin[axis] += box.origin[axis];
    chunk.range.offset = piece.offset + static_cast<std::uint64_t>(part.first * element_bytes);
    chunk.range.length = static_cast<std::uint64_t>(part.box.volume() * element_bytes);
    chunks.push_back(chunk);
  }
}

}  // namespace shardwright

// SPDX-License-Identifier: Apache-2.0
#include "tensor/chunk_part.h"

#include "tensor/strided_copy.h"

namespace shardwright {

Dims with_first(const Dims& dims, std::int64_t first) {
  Dims result{first};
  for (const std::int64_t value : dims) result.push_back(value);
  return result;
}

Box lifted(const Box& box, std::int64_t index) {
  return {with_first(box.origin, index), with_first(box.shape, 1)};
}

Chunk lifted(Chunk chunk, std::int64_t index) {
  chunk.box = lifted(chunk.box, index);
  if (!chunk.strides.empty()) chunk.strides = with_first(chunk.strides, 0);
  return chunk;
}

Chunk part_of(const Chunk& chunk, const Box& box, int element_bytes) {
  Chunk part{box, chunk.file, chunk.range, {}};
  if (box == chunk.box) {
    part.strides = chunk.strides;
    return part;
  }
  part.strides = chunk.strides.empty() ? row_major_strides(chunk.box.shape) : chunk.strides;
  const Dims bytes = byte_strides(part.strides, element_bytes);
  std::int64_t skipped = 0;
  for (int axis = 0; axis < box.axes(); ++axis) {
    skipped += (box.origin[axis] - chunk.box.origin[axis]) * bytes[axis];
  }
  part.range.offset += static_cast<std::uint64_t>(skipped);
  part.range.length = static_cast<std::uint64_t>(span_bytes(box.shape, bytes, element_bytes));
  return part;
}

void append_moved(const StoredTensor& source, const Box& piece, const Dims& origin,
                  ChunkList& target) {
  for (std::size_t i = 0; i < source.chunks.size(); ++i) {
    const std::optional<Box> common = intersect(source.chunks.box(i), piece);
    if (!common) continue;
    Chunk part = part_of(source.chunks[i], *common, bytes_of(source.desc.dtype));
    for (int axis = 0; axis < part.box.axes(); ++axis) {
      part.box.origin[axis] += origin[axis] - piece.origin[axis];
    }
    target.push_back(part);
  }
}

}  // namespace shardwright

// SPDX-License-Identifier: Apache-2.0
#include "shardwright/catalog.h"

#include <algorithm>

namespace shardwright {
namespace {

Dims read_dims(const std::int64_t* values, int axes) {
  Dims dims;
  for (int axis = 0; axis < axes; ++axis) dims.push_back(values[axis]);
  return dims;
}

}  // namespace

Box ChunkList::box(std::size_t index) const {
  const std::int64_t* values = words_.data() + index * words_per_chunk();
  return Box{read_dims(values, axes_), read_dims(values + axes_, axes_)};
}

Chunk ChunkList::operator[](std::size_t index) const {
  Chunk chunk{box(index), file(index), range(index), {}};
  if (!strides_.empty()) {
    const Dims strides =
        read_dims(strides_.data() + index * static_cast<std::size_t>(axes_), axes_);
    if (axes_ > 0 && strides[0] >= 0) chunk.strides = strides;
  }
  return chunk;
}

void ChunkList::push_back(const Chunk& chunk) {
  words_.resize(words_.size() + words_per_chunk());
  std::int64_t* word = words_.data() + count_ * words_per_chunk();
  word = std::copy(chunk.box.origin.begin(), chunk.box.origin.end(), word);
  std::copy(chunk.box.shape.begin(), chunk.box.shape.end(), word);
  set_location(count_++, chunk.file, chunk.range);
  if (!strides_.empty()) strides_.resize(strides_.size() + static_cast<std::size_t>(axes_), -1);
  if (!chunk.strides.empty()) set_strides(size() - 1, chunk.strides);
}

void ChunkList::set_location(std::size_t index, std::uint32_t file, ByteRange range) {
  std::int64_t* word = words_.data() + place_of(index);
  word[0] = static_cast<std::int64_t>(range.offset);
  word[1] = static_cast<std::int64_t>(range.length);
  word[2] = file;
}

void ChunkList::set_strides(std::size_t index, const Dims& strides) {
  const std::size_t axes = static_cast<std::size_t>(axes_);
  if (strides.empty() && strides_.empty()) return;
  // -1 in the first place marks a row-major chunk among strided ones.
  strides_.resize(size() * axes, -1);
  for (std::size_t axis = 0; axis < axes; ++axis) {
    strides_[index * axes + axis] = strides.empty() ? -1 : strides[static_cast<int>(axis)];
  }
}

void ChunkList::reserve(std::size_t count) { words_.reserve(count * words_per_chunk()); }

void ChunkList::shrink_to_fit() { words_.shrink_to_fit(); }

std::vector<TensorDesc> descs_of(const Catalog& catalog) {
  std::vector<TensorDesc> descs;
  descs.reserve(catalog.tensors.size());
  for (const StoredTensor& tensor : catalog.tensors) descs.push_back(tensor.desc);
  return descs;
}

}  // namespace shardwright

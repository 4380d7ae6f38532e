// SPDX-License-Identifier: Apache-2.0
#include "format/legacy/legacy_chunks.h"

#include "base/fail.h"
#include "dcp/guarded_storage.h"
#include "tensor/strided_copy.h"

namespace shardwright {
namespace {

// Whether strides say what having none says too: axes of extent 1 may have any.
bool is_row_major(const Chunk& chunk) {
  const Dims usual = row_major_strides(chunk.box.shape);
  for (int axis = 0; axis < usual.size(); ++axis) {
    if (chunk.box.shape[axis] != 1 && chunk.strides[axis] != usual[axis]) return false;
  }
  return true;
}

}  // namespace

Status LegacyChunks::add(std::string_view prefix, const LegacyPiece& piece) {
  const LocatedTensor& place = piece.place;
  const LegacyPart& part = piece.part;
  TensorDesc desc = part.canonical;
  desc.name.insert(0, prefix);
  desc.dtype = place.dtype;
  Chunk chunk{part.box, piece.file, {}, part.strides};
  if (!place.strides.empty()) {
    if (!piece.is_whole) {
      return fail(Code::kUnsupportedFormat, "tensor {}: found strides {}, expected row-major",
                  desc.name, to_string(place.strides));
    }
    const int lead = part.box.axes() - place.shape.size();
    for (int axis = 0; axis < place.shape.size(); ++axis) {
      chunk.strides[axis + lead] = place.strides[axis];
    }
  }
  const int element = bytes_of(place.dtype);
  const Dims strides = byte_strides(chunk.strides, element);
  chunk.range.offset = place.range.offset + static_cast<std::uint64_t>(part.offset * element);
  if (!part.box.is_empty()) {
    chunk.range.length = static_cast<std::uint64_t>(span_bytes(part.box.shape, strides, element));
  }
  if (is_row_major(chunk)) chunk.strides = {};
  expect_record(files_, piece.file, place, desc.name);
  return add_chunk(desc, chunk);
}

Status LegacyChunks::add_chunk(const TensorDesc& desc, const Chunk& chunk) {
  std::vector<StoredTensor>& tensors = catalog_.tensors;
  const auto [found, is_new] = by_name_.emplace(desc.name, tensors.size());
  if (is_new) tensors.push_back({desc, ChunkList(desc.shape.size()), Encoding::kRaw});
  StoredTensor& stored = tensors[found->second];
  if (!(stored.desc.shape == desc.shape) || stored.desc.dtype != desc.dtype) {
    return fail(Code::kShapeMismatch,
                "tensor {}: found what makes it {} {}, expected {} {} as in other ranks' files",
                desc.name, torch_name(desc.dtype), to_string(desc.shape),
                torch_name(stored.desc.dtype), to_string(stored.desc.shape));
  }
  stored.chunks.push_back(chunk);
  return {};
}

}  // namespace shardwright

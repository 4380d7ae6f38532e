// SPDX-License-Identifier: Apache-2.0
#include "verify/tile_buffer.h"

namespace shardwright {

TileBuffer::TileBuffer(const View& view, const Lowering& lowering, std::size_t bytes)
    : view_(&view),
      memory_(std::make_unique_for_overwrite<std::byte[]>(2 * bytes)),
      tile_(memory_.get(), bytes),
      reader_(view.plan, lowering, *view.checkpoint.files,
              std::span(memory_.get() + bytes, bytes)) {}

Result<std::span<const std::byte>> TileBuffer::read(std::size_t tensor, const Box& tile) {
  const int element = bytes_of(view_->plan.target.tensors[tensor].desc.dtype);
  const std::span<std::byte> bytes = tile_.first(static_cast<std::size_t>(tile.volume() * element));
  const TilePart part = dense_part(tile, bytes.data(), element);
  SW_TRY(reader_.read(tensor, tile, bytes, std::span(&part, 1)));
  return bytes;
}

TileGrid tiles_of(const View& view, std::size_t tensor, std::size_t bytes) {
  const TensorDesc& desc = view.plan.target.tensors[tensor].desc;
  return {desc.shape, bytes_of(desc.dtype), static_cast<std::int64_t>(bytes)};
}

std::uint64_t bytes_of(const View& view) {
  std::uint64_t bytes = 0;
  for (const StoredTensor& tensor : view.plan.target.tensors) {
    bytes += static_cast<std::uint64_t>(Box::whole(tensor.desc.shape).volume() *
                                        bytes_of(tensor.desc.dtype));
  }
  return bytes;
}

}  // namespace shardwright

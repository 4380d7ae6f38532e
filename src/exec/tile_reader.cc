// SPDX-License-Identifier: Apache-2.0
#include "exec/tile_reader.h"

#include <cstring>

#include "base/fail.h"

namespace shardwright {
namespace {

// Sets every element. Zero is all bits zero in every dtype.
Status fill_with(double value, DType dtype, std::span<std::byte> bytes) {
  if (value == 0.0) {
    std::memset(bytes.data(), 0, bytes.size());
    return {};
  }
  return convert_run({DType::kF64, dtype, 0.0},
                     static_cast<std::int64_t>(bytes.size()) / bytes_of(dtype),
                     reinterpret_cast<const std::byte*>(&value), 0, bytes.data(), bytes_of(dtype));
}

}  // namespace

TilePart dense_part(const Box& box, std::byte* bytes, int element_bytes) {
  TilePart part{box, bytes, row_major_strides(box.shape)};
  for (int axis = 0; axis < part.strides.size(); ++axis) part.strides[axis] *= element_bytes;
  return part;
}

Status TileReader::read(std::size_t tensor, const Box& tile, std::span<std::byte> memory,
                        std::span<const TilePart> parts) {
  const TensorDesc& target = plan_->target.tensors[tensor].desc;
  const TensorRecipe& recipe = plan_->tensors[tensor];
  const auto named = [&](Status status) -> Status {
    // A record's own error names its tensor.
    if (status || status.error().code == Code::kPayloadDamaged) return status;
    return std::unexpected(std::move(status).error().within(fmt::format("tensor {}", target.name)));
  };
  if (sums_.is_sum(tensor)) return named(sums_.read(tensor, tile, parts, gather_));
  if (recipe.fill) SW_TRY(fill_with(*recipe.fill, target.dtype, memory));
  pieces_.clear();
  lowering_->lower(tensor, tile, pieces_);
  for (const SourcePiece& piece : pieces_) {
    SW_TRY(named(gather_.read(piece, {piece.dtype, target.dtype, recipe.add}, parts)));
  }
  return {};
}

}  // namespace shardwright

// SPDX-License-Identifier: Apache-2.0
#include "exec/tile_reader.h"

#include <algorithm>
#include <cstring>

#include "base/fail.h"
#include "exec/quantise_region.h"

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
  return {box, bytes, byte_strides(row_major_strides(box.shape), element_bytes)};
}

Status TileReader::read(std::size_t tensor, const Box& tile, std::span<std::byte> memory,
                        std::span<const TilePart> parts) {
  const TensorDesc& target = plan_->target.tensors[tensor].desc;
  const TensorRecipe& recipe = plan_->tensors[tensor];
  const auto make = [&]() -> Status {
    if (recipe.quantising != nullptr) {
      const auto read = [&](const Box& box, std::span<float> values) {
        return read_matrix(tensor, box, values);
      };
      return quantise_region(*recipe.quantising, target.dtype, tile, parts, read, matrix_);
    }
    if (sums_.is_sum(tensor)) return sums_.read(tensor, tile, parts, gather_);
    if (recipe.fill) SW_TRY(fill_with(*recipe.fill, target.dtype, memory));
    return gather(tensor, tile, target.dtype, parts);
  };
  Status status = make();
  // A record's own error names its tensor.
  if (status || status.error().code == Code::kPayloadDamaged) return status;
  return std::unexpected(std::move(status).error().within(translated("tensor {}", target.name)));
}

Status TileReader::read_matrix(std::size_t tensor, const Box& box, std::span<float> values) {
  const TensorRecipe& recipe = plan_->tensors[tensor];
  if (recipe.fill) std::ranges::fill(values, static_cast<float>(*recipe.fill));
  const TilePart part = dense_part(box, reinterpret_cast<std::byte*>(values.data()), sizeof(float));
  return gather(tensor, box, DType::kF32, std::span(&part, 1));
}

Status TileReader::gather(std::size_t tensor, const Box& box, DType dtype,
                          std::span<const TilePart> parts) {
  pieces_.clear();
  lowering_->lower(tensor, box, pieces_);
  const double add = plan_->tensors[tensor].add;
  for (const SourcePiece& piece : pieces_) {
    SW_TRY(gather_.read(piece, {piece.dtype, dtype, add}, parts));
  }
  return {};
}

}  // namespace shardwright

// SPDX-License-Identifier: Apache-2.0
#include "convert/tensor_values.h"

#include "exec/gather.h"

namespace shardwright {
namespace {

constexpr std::int64_t kTileBytes = std::int64_t{1} << 20;

int element_bytes(const Plan& plan, std::size_t target) {
  return bytes_of(plan.target.tensors[target].desc.dtype);
}

}  // namespace

TensorValues::TensorValues(const Plan& plan, SourceFiles& files)
    : plan_(&plan),
      files_(&files),
      lowering_(plan),
      scratch_(static_cast<std::size_t>(kTileBytes)) {}

TileGrid TensorValues::grid(std::size_t target) const {
  return {plan_->target.tensors[target].desc.shape, element_bytes(*plan_, target), kTileBytes};
}

Result<std::span<const std::byte>> TensorValues::read(std::size_t target, const Box& tile,
                                                      int slot) {
  const int width = element_bytes(*plan_, target);
  std::vector<std::byte>& bytes = bytes_[slot];
  bytes.assign(static_cast<std::size_t>(tile.volume() * width), std::byte{0});
  Part part{tile, bytes.data(), row_major_strides(tile.shape)};
  for (int axis = 0; axis < part.strides.size(); ++axis) part.strides[axis] *= width;
  pieces_.clear();
  lowering_.lower(target, tile, pieces_);
  Gather gather(*files_, scratch_);
  const DType dtype = plan_->target.tensors[target].desc.dtype;
  const double add = plan_->tensors[target].add;
  for (const SourcePiece& piece : pieces_) {
    SW_TRY(gather.read(piece, {piece.dtype, dtype, add}, std::span(&part, 1)));
  }
  return std::span<const std::byte>(bytes);
}

}  // namespace shardwright

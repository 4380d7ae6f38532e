// SPDX-License-Identifier: Apache-2.0
#include "compare/tensor_values.h"

namespace shardwright {
namespace {

constexpr std::int64_t kTileBytes = std::int64_t{1} << 20;

int element_bytes(const Plan& plan, std::size_t target) {
  return bytes_of(plan.target.tensors[target].desc.dtype);
}

}  // namespace

TensorValues::TensorValues(const Plan& plan, SourceFiles& files)
    : plan_(&plan),
      lowering_(plan),
      scratch_(static_cast<std::size_t>(kTileBytes)),
      reader_(plan, lowering_, files, scratch_) {}

TileGrid TensorValues::grid(std::size_t target) const {
  return {plan_->target.tensors[target].desc.shape, element_bytes(*plan_, target), kTileBytes};
}

Result<std::span<const std::byte>> TensorValues::read(std::size_t target, const Box& tile,
                                                      int slot) {
  const int width = element_bytes(*plan_, target);
  std::vector<std::byte>& bytes = bytes_[slot];
  bytes.assign(static_cast<std::size_t>(tile.volume() * width), std::byte{0});
  const TilePart part = dense_part(tile, bytes.data(), width);
  SW_TRY(reader_.read(target, tile, bytes, std::span(&part, 1)));
  return std::span<const std::byte>(bytes);
}

}  // namespace shardwright

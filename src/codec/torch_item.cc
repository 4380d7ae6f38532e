// SPDX-License-Identifier: Apache-2.0
#include "codec/torch_item.h"

#include <array>

namespace shardwright {

Result<TensorItem> TensorItem::make(DType dtype, const Dims& shape, std::uint64_t base) {
  const std::array<std::uint64_t, 1> storages = {
      static_cast<std::uint64_t>(SW_TRY(byte_count(shape, dtype)))};
  TorchLayoutOptions options;
  options.base = base;
  options.format_records = false;
  options.serialization_id = false;
  return TensorItem(
      SW_TRY(TorchLayout::make(torch_tensor_pickle(dtype, shape), storages, options)));
}

std::string TensorItem::tail(std::uint32_t payload_crc) const {
  const std::array<std::uint32_t, 1> crcs = {payload_crc};
  return layout_.tail(crcs);
}

}  // namespace shardwright

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "codec/torch_layout.h"

namespace shardwright {

/// The torch.save archive of one dense tensor as an item of a `.distcp` file: everything but the
/// payload, which may be streamed in between. Depends on dtype, shape and position only, so an item
/// is laid out when planning and again when writing. Leaves out the optional records, which every
/// torch version accepts.
class TensorItem {
 public:
  /// `base` is the item's position in its file; the payload is aligned to 64 bytes there.
  [[nodiscard]] static Result<TensorItem> make(DType dtype, const Dims& shape, std::uint64_t base);

  [[nodiscard]] std::uint64_t size() const { return layout_.total_bytes(); }
  [[nodiscard]] std::string head() const { return layout_.head(); }
  [[nodiscard]] std::uint64_t payload_offset() const { return layout_.storage(0).offset; }
  /// Everything behind the payload.
  [[nodiscard]] std::string tail(std::uint32_t payload_crc) const;

 private:
  explicit TensorItem(TorchLayout layout) : layout_(std::move(layout)) {}

  TorchLayout layout_;
};

}  // namespace shardwright

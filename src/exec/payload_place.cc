// SPDX-License-Identifier: Apache-2.0
#include "exec/payload_place.h"

#include "base/fail.h"
#include "codec/torch_item.h"

namespace shardwright {

std::uint64_t payload_bytes(const StoredTensor& tensor, std::uint32_t chunk) {
  return static_cast<std::uint64_t>(tensor.chunks.box(chunk).volume()) *
         static_cast<std::uint64_t>(bytes_of(tensor.desc.dtype));
}

Result<PayloadPlace> place_of_payload(const StoredTensor& tensor, std::uint32_t chunk) {
  const std::uint64_t begin = tensor.chunks.range(chunk).offset;
  PayloadPlace place{tensor.chunks.file(chunk), begin};
  if (tensor.encoding != Encoding::kRaw) {
    const TensorItem item =
        SW_TRY(TensorItem::make(tensor.desc.dtype, tensor.chunks.box(chunk).shape, begin));
    place.offset += item.payload_offset();
  }
  return place;
}

Result<PayloadPlace> place_of(const Plan& plan, const PieceRun& run) {
  if (run.is_object()) {
    const StoredObject& object = plan.target.objects[run.index];
    return PayloadPlace{object.file, object.range.offset + run.offset};
  }
  PayloadPlace place = SW_TRY(place_of_payload(plan.target.tensors[run.index], run.chunk));
  place.offset += run.offset;
  return place;
}

}  // namespace shardwright

// SPDX-License-Identifier: Apache-2.0
#include "exec/payload_writer.h"

#include <array>

#include "base/crc32.h"
#include "base/endian.h"
#include "codec/torch_item.h"
#include "exec/payload_place.h"

namespace shardwright {

Result<WrittenRun> PayloadWriter::write(const PieceRun& run,
                                        std::span<const std::byte> bytes) const {
  const std::uint32_t crc = crc32(bytes);
  if (!run.is_object()) {
    const StoredTensor& tensor = plan_->target.tensors[run.index];
    if (tensor.encoding == Encoding::kTorchItem && run.length == payload_bytes(tensor, run.chunk)) {
      SW_TRY(write_item(tensor, run.chunk, crc, bytes));
      return WrittenRun{run, crc, true};
    }
  }
  const PayloadPlace place = SW_TRY(place_of(*plan_, run));
  const WritableFile& file = *SW_TRY(files_->get(place.file));
  SW_TRY(file.write_at(place.offset, bytes));
  file.start_writeback(place.offset, bytes.size());
  return WrittenRun{run, crc, false};
}

Status PayloadWriter::write_item(const StoredTensor& tensor, std::uint32_t chunk, std::uint32_t crc,
                                 std::span<const std::byte> payload) const {
  const Chunk place = tensor.chunks[chunk];
  const TensorItem item =
      SW_TRY(TensorItem::make(tensor.desc.dtype, place.box.shape, place.range.offset));
  const std::string head = item.head();
  const std::string tail = item.tail(crc);
  const std::array<std::span<const std::byte>, 3> pieces = {as_bytes(head), payload,
                                                            as_bytes(tail)};
  const WritableFile& file = *SW_TRY(files_->get(place.file));
  SW_TRY(file.write_at(place.range.offset, pieces));
  file.start_writeback(place.range.offset, place.range.length);
  return {};
}

}  // namespace shardwright

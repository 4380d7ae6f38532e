// SPDX-License-Identifier: Apache-2.0
#include "exec/target_writer.h"

#include <algorithm>
#include <array>

#include "base/endian.h"
#include "codec/crc32.h"
#include "codec/torch_item.h"

namespace shardwright {

Status TargetWriter::create() {
  const std::vector<std::string>& paths = plan_->target.files;
  files_.reserve(paths.size());
  for (std::size_t i = 0; i < paths.size(); ++i) {
    files_.push_back(SW_TRY(directory_->create(paths[i], plan_->file_sizes[i])));
  }
  for (const Literal& literal : plan_->literals) {
    SW_TRY(files_[literal.file]->write_at(literal.offset, as_bytes(literal.bytes)));
  }
  for (std::size_t i = 0; i < plan_->objects.size(); ++i) {
    if (plan_->objects[i].is_copy) continue;
    const StoredObject& object = plan_->target.objects[i];
    SW_TRY(files_[object.file]->write_at(object.range.offset, as_bytes(plan_->objects[i].bytes)));
  }
  return {};
}

Status TargetWriter::write_raw(std::uint32_t file, std::uint64_t offset,
                               std::span<const std::byte> bytes) {
  SW_TRY(files_[file]->write_at(offset, bytes));
  files_[file]->start_writeback(offset, bytes.size());
  return {};
}

Status TargetWriter::write_run(std::size_t tensor, std::uint32_t chunk, std::uint64_t run_offset,
                               std::span<const std::byte> bytes) {
  const StoredTensor& target = plan_->target.tensors[tensor];
  if (target.encoding == Encoding::kRaw) {
    return write_raw(target.chunks.file(chunk), target.chunks.range(chunk).offset + run_offset,
                     bytes);
  }
  const std::int64_t payload = target.chunks.box(chunk).volume() * bytes_of(target.desc.dtype);
  if (bytes.size() == static_cast<std::uint64_t>(payload)) return write_item(target, chunk, bytes);
  return write_item_run(tensor, chunk, {run_offset, bytes.size(), crc32(bytes)}, bytes);
}

Status TargetWriter::write_item(const StoredTensor& tensor, std::uint32_t chunk,
                                std::span<const std::byte> payload) {
  const Chunk place = tensor.chunks[chunk];
  const TensorItem item =
      SW_TRY(TensorItem::make(tensor.desc.dtype, place.box.shape, place.range.offset));
  const std::string head = item.head();
  const std::string tail = item.tail(crc32(payload));
  const std::array<std::span<const std::byte>, 3> pieces = {as_bytes(head), payload,
                                                            as_bytes(tail)};
  SW_TRY(files_[place.file]->write_at(place.range.offset, pieces));
  files_[place.file]->start_writeback(place.range.offset, place.range.length);
  return {};
}

Status TargetWriter::write_item_run(std::size_t tensor, std::uint32_t chunk, const Run& run,
                                    std::span<const std::byte> bytes) {
  const StoredTensor& target = plan_->target.tensors[tensor];
  const Chunk place = target.chunks[chunk];
  const TensorItem item =
      SW_TRY(TensorItem::make(target.desc.dtype, place.box.shape, place.range.offset));
  SW_TRY(write_raw(place.file, place.range.offset + item.payload_offset() + run.offset, bytes));

  std::vector<Run> runs;
  {
    const std::scoped_lock lock(mutex_);
    const std::uint64_t key = (static_cast<std::uint64_t>(tensor) << 32) | chunk;
    const std::uint64_t payload = static_cast<std::uint64_t>(place.box.volume()) *
                                  static_cast<std::uint64_t>(bytes_of(target.desc.dtype));
    Pending& pending = pending_.try_emplace(key, Pending{payload, {}}).first->second;
    pending.missing -= run.length;
    pending.runs.push_back(run);
    if (pending.missing > 0) return {};
    runs = std::move(pending.runs);
    pending_.erase(key);
  }
  std::sort(runs.begin(), runs.end(),
            [](const Run& a, const Run& b) { return a.offset < b.offset; });
  std::uint32_t crc = 0;
  for (const Run& part : runs) crc = crc32_combine(crc, part.crc, part.length);
  const std::string tail = item.tail(crc);
  SW_TRY(files_[place.file]->write_at(place.range.offset, as_bytes(item.head())));
  return files_[place.file]->write_at(place.range.offset + place.range.length - tail.size(),
                                      as_bytes(tail));
}

}  // namespace shardwright
